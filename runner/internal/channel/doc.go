// Package channel carries connections out of a sandbox, and into it, over its one
// stream.
//
// A program in the sandbox connects to the harness's proxy, and its connection
// becomes a channel: a net.Conn that a Mux, which is a net.Listener, accepts on
// this side. The payload of a frame.KindChannel is an operation, a big-endian
// uint32 id and the operation's data:
//
//			o        open: the sandbox's ids go up from 1, the service's from 1<<31; used once
//			d bytes  data: no more than the receiver has given credit for
//			c uint32 credit: the receiver has room for so many bytes more
//			e        end: no data follows, the other direction goes on
//			q        close: from the service alone; an end, and nothing more is read
//			x        reset: the channel is over at once, both ways
//
//		 1. Each side begins with Window bytes of credit for the other, and gives
//		    more as its reader takes what has come. So a reader that is slow holds up its
//		    own channel, and the memory of a channel is bounded.
//		 2. Receive never waits: what a sandbox sends beside its channels goes on.
//		 3. A channel is over by ends of both sides, or by one close or reset. At most
//		    MaxChannels are open at one time.
//	 4. A Mux either accepts what the sandbox opens or opens channels itself, for
//	    the file operations of a session. What the two sides may send is the same but for
//	    the open; Ours tells the channels apart.
//
// The sandbox is not trusted. What an honest harness would not send is an error
// of Receive. Frames for a channel that is over are passed over, since they may
// have been under way.
package channel
