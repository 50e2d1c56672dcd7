"""Connections over the one stream: channels.

This side moves bytes between a channel and a socket of this process. What they say, and
whether they may, is not its affair. The Go package runner/internal/channel says what each
operation means.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import struct
import threading
import traceback
from collections.abc import Callable

from harness.stream.frames import CHANNEL, Writer
from harness.system.privileges import KILL_SECONDS, kill_user

WINDOW = 256 << 10  # bytes of a channel under way in one direction
MAX_CHANNELS = 64  # of programs at one time; further connections wait
MAX_FILE_CHANNELS = 8  # of the service at one time, for file operations
FILES = 1 << 31  # the ids of those begin here
MAX_DATA = 64 << 10  # bytes of a channel in one frame

OPEN, DATA, CREDIT, END, CLOSE, RESET = b"o", b"d", b"c", b"e", b"q", b"x"
_HEADER = struct.Struct(">cI")
_COUNT = struct.Struct(">I")
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # struct linger


class Channel:
    """One connection."""

    def __init__(self, number: int, client: socket.socket, writer: Writer) -> None:
        self.number, self.client, self.writer = number, client, writer
        self.credit = WINDOW  # bytes that the service has room for
        self.taken = 0  # bytes written to the program that no credit was given back for
        self.buffer: collections.deque[memoryview] = collections.deque()  # at most WINDOW
        self.sent_end = False  # the program sends no more
        self.got_end = False  # the service sends no more
        self.closing = False  # and reads no more
        self.events = 0  # that the poll looks for

    def wanted(self) -> int:
        """Return the events that something could be done at."""
        wanted = 0
        if not self.sent_end and not self.closing and self.credit:
            wanted |= select.EPOLLIN
        if self.buffer:
            wanted |= select.EPOLLOUT
        return wanted


Opener = Callable[[], socket.socket]


class Channels:
    """Answers from start to stop, on a thread of its own.

    writer returns who takes what is sent; it is asked once for each channel. What connects
    to listener becomes a channel; and what the service opens, with what opener returns,
    which raises OSError where it cannot. turned is called when something can be read, before
    that is passed on.
    """

    def __init__(
        self,
        writer: Callable[[], Writer],
        listener: socket.socket | None = None,
        opener: Opener | None = None,
        turned: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer, self._listener, self._opener, self._turned = writer, listener, opener, turned
        if listener:
            listener.setblocking(False)
        self._listening = False
        self._channels: dict[int, Channel] = {}
        self._by_descriptor: dict[int, Channel] = {}
        self._last = 0
        # From the service, not looked at yet; None is that another one has come. Its credit,
        # and what this side has sent, bound how much that is.
        self._arrived: collections.deque[bytes | None] = collections.deque()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._epoll = select.epoll()
        self._epoll.register(self._woken, select.EPOLLIN)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def receive(self, payload: bytes) -> None:
        """Take what the service has sent, from any thread, without waiting."""
        self._arrived.append(payload)
        self._rouse()

    def reset(self) -> None:
        """End the connections to a service that is gone, in the order of what is received.

        From any thread.
        """
        self._arrived.append(None)
        self._rouse()

    def stop(self) -> None:
        """End all connections, and return when nothing goes on."""
        self._stopped = True
        self._rouse()
        self._thread.join()

    def _rouse(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake anyway
            os.write(self._wake, b"w")

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._turn()
        except BaseException:  # noqa: BLE001 - whatever it is
            # Nobody would take from the service any more.
            traceback.print_exc()
            kill_user(KILL_SECONDS)
            os._exit(1)
        if self._listener:
            self._listener.close()
        for channel in list(self._channels.values()):
            self._forget(channel, reset=True)

    def _turn(self) -> None:
        self._listen()
        ready = self._epoll.poll()
        self._turned()
        for fd, events in ready:
            if fd == self._woken:
                os.read(fd, 4096)
                while self._arrived:
                    if (payload := self._arrived.popleft()) is not None:
                        self._heard(payload)
                        continue
                    for stale in [c for c in self._channels.values() if c.writer.over]:
                        self._forget(stale, reset=True)
            elif self._listener and fd == self._listener.fileno():
                self._accept(self._listener)
            elif channel := self._by_descriptor.get(fd):
                self._ready(channel, events)

    def _listen(self) -> None:
        """Take connections while there is room for them; others wait in the backlog."""
        if self._listener is None:
            return
        room = sum(number < FILES for number in self._channels) < MAX_CHANNELS
        if room != self._listening:
            self._listening = room
            if room:
                self._epoll.register(self._listener, select.EPOLLIN)
            else:
                self._epoll.unregister(self._listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it is gone again
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last += 1
        channel = self._add(self._last, client)
        self._send(OPEN, channel)
        self._watch(channel)

    def _add(self, number: int, client: socket.socket) -> Channel:
        client.setblocking(False)
        channel = Channel(number, client, self._writer())
        self._channels[number] = channel
        self._by_descriptor[client.fileno()] = channel
        return channel

    def _open(self, number: int) -> None:
        """Join what the service has opened with whom it is for."""
        writer = self._writer()
        used = sum(n >= FILES for n in self._channels)
        if self._opener and used < MAX_FILE_CHANNELS and number not in self._channels:
            try:
                self._watch(self._add(number, self._opener()))
                return
            except OSError:
                traceback.print_exc()
        writer.write(CHANNEL, _HEADER.pack(RESET, number))

    def _heard(self, payload: bytes) -> None:
        kind, number = _HEADER.unpack_from(payload)
        if kind == OPEN and number >= FILES:
            self._open(number)
            return
        if (channel := self._channels.get(number)) is None:  # it is over on this side
            return
        if kind == DATA:
            channel.buffer.append(memoryview(payload)[_HEADER.size :])
            self._deliver(channel)
        elif kind == CREDIT:
            channel.credit += _COUNT.unpack_from(payload, _HEADER.size)[0]
        elif kind in (END, CLOSE):
            channel.got_end, channel.closing = True, channel.closing or kind == CLOSE
            self._deliver(channel)
        elif kind == RESET:
            self._forget(channel, reset=True)
        self._watch(channel)

    def _ready(self, channel: Channel, events: int) -> None:
        broken = events & (select.EPOLLERR | select.EPOLLHUP)
        if channel.buffer and (events & select.EPOLLOUT or broken):
            self._deliver(channel)
        if channel.wanted() & select.EPOLLIN and (events & select.EPOLLIN or broken):
            self._take(channel)
        self._watch(channel)

    def _take(self, channel: Channel) -> None:
        """Pass on what the program has sent."""
        try:
            data = channel.client.recv(min(MAX_DATA, channel.credit))
        except BlockingIOError:
            return
        except OSError:
            self._send(RESET, channel)
            self._forget(channel)
            return
        if data:
            channel.credit -= len(data)
            self._send(DATA, channel, data)
            return
        channel.sent_end = True
        self._send(END, channel)
        self._settle(channel)

    def _deliver(self, channel: Channel) -> None:
        """Write to the program what it has room for."""
        try:
            while channel.buffer:
                part = channel.buffer[0]
                sent = channel.client.send(part)
                channel.taken += sent
                if sent < len(part):
                    channel.buffer[0] = part[sent:]
                else:
                    channel.buffer.popleft()
        except BlockingIOError:
            pass
        except OSError:
            if not channel.closing:  # else it is over on the other side
                self._send(RESET, channel)
            self._forget(channel)
            return
        if channel.taken >= WINDOW // 2 and not channel.got_end:
            self._send(CREDIT, channel, _COUNT.pack(channel.taken))
            channel.taken = 0
        if channel.got_end and not channel.buffer:
            with contextlib.suppress(OSError):
                channel.client.shutdown(socket.SHUT_WR)
            self._settle(channel)

    def _settle(self, channel: Channel) -> None:
        """Forget a channel that is over."""
        over = channel.got_end and not channel.buffer
        if over and (channel.sent_end or channel.closing):
            self._forget(channel)

    def _forget(self, channel: Channel, reset: bool = False) -> None:
        if self._channels.pop(channel.number, None) is None:
            return
        del self._by_descriptor[channel.client.fileno()]
        if channel.events:
            self._epoll.unregister(channel.client)
        if reset:  # so that the program does not take it for a good end
            with contextlib.suppress(OSError):
                channel.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        channel.client.close()

    def _watch(self, channel: Channel) -> None:
        """Look for what something could be done at; nothing at all is reported otherwise."""
        if channel.number not in self._channels or (wanted := channel.wanted()) == channel.events:
            return
        if not channel.events:
            self._epoll.register(channel.client, wanted)
        elif not wanted:
            self._epoll.unregister(channel.client)
        else:
            self._epoll.modify(channel.client, wanted)
        channel.events = wanted

    def _send(self, kind: bytes, channel: Channel, data: bytes = b"") -> None:
        channel.writer.write(CHANNEL, _HEADER.pack(kind, channel.number) + data)
