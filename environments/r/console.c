/* What R writes to its console, and what other programs write to the descriptors 1 and 2,
 * sent as messages of Jupyter's while it is written.
 *
 * R gives its text to ptr_R_WriteConsoleEx ("Writing R Extensions", 8.1.2). It is sent at
 * once where nothing was for INTERVAL_MS, else with what follows within that time. The
 * descriptors are files without a name, so that no process ever waits for a reader. They
 * are looked at before each piece of R's own text, so that all keeps its order.
 *
 * R may be long in one call that writes no more: a decomposition, another program. So a
 * thread looks every INTERVAL_MS as well. It never calls R; all that it and R's thread
 * share is under one lock, sockets too: whatever this process sends goes through here. No
 * signal is taken under the lock, and no R code is run, so that an interrupt ends neither a
 * message nor anything but the user's own code.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <zmq.h>

#include <Rinternals.h>
#define R_INTERFACE_PTRS 1
#include <Rinterface.h>

enum {
    INTERVAL_MS = 50,       /* between messages; what a reader takes for live */
    FLUSH_MS = 5,           /* the same where R is told to flush */
    BUFFER_BYTES = 1 << 16, /* that wait at most, and of one message */
    ESCAPE_BYTES = 6,       /* that one of them becomes at most, in JSON */
    CHARACTER_BYTES = 4,    /* of UTF-8 at most */
    FRAME_BYTES = 256,      /* what a message has besides, but for what a cell tells */
    STACK_BYTES = 1 << 18   /* of the thread */
};

static pid_t owner;                /* forks have no share in its sockets */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER; /* a cell */
static pthread_t thread;
static int runs;                   /* a cell */
static int ended;                  /* nothing can be sent any more */

static void *publisher;            /* the socket */
static char key[FRAME_BYTES];      /* that messages are signed with */
static char *message;              /* room for one: header, parent, metadata, content */
static char *header_end, *parent;  /* of the cell's messages; NULL where nobody is to hear */
static unsigned long sent;

static char buffer[BUFFER_BYTES];
static size_t held;
static int held_kind;              /* 1: of stderr */
static int64_t last_ms;
static off_t seen[2];              /* of each descriptor */

static sigset_t before;            /* the lock was taken */

static void take_lock(void) {
    sigset_t all, mask;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    pthread_mutex_lock(&mutex);
    before = mask;
}

static void leave_lock(void) {
    sigset_t mask = before;
    pthread_mutex_unlock(&mutex);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* How many bytes the character at the beginning has, 0 where there is none. */
static size_t character(const unsigned char *text, size_t size) {
    unsigned char c = text[0], low = 0x80, high = 0xBF;
    size_t length = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (length > size)
        return 0;
    switch (c) { /* no overlong forms, no surrogates, nothing above U+10FFFF */
    case 0xE0: low = 0xA0; break;
    case 0xED: high = 0x9F; break;
    case 0xF0: low = 0x90; break;
    case 0xF4: high = 0x8F; break;
    }
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xBF)
        if (text[i] < low || text[i] > high)
            return 0;
    return length;
}

/* Appends text as it stands between quotes in JSON, and returns its end. */
static char *escape(char *to, const unsigned char *text, size_t size) {
    while (size > 0) {
        unsigned char c = text[0];
        size_t length = character(text, size);
        if (length == 0) {
            to = stpcpy(to, "\xEF\xBF\xBD"); /* U+FFFD */
            length = 1;
        } else if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        } else if (c == '\n') {
            to = stpcpy(to, "\\n");
        } else if (c > 0 && (c < 0x20 || c == 0x7F)) {
            to += sprintf(to, "\\u%04x", c);
        } else if (c > 0) {
            to = mempcpy(to, text, length);
        }
        text += length;
        size -= length;
    }
    return to;
}

/* Sends a message of up to BUFFER_BYTES. */
static void pass_on(const char *text, size_t size, int kind) {
    static const char metadata[] = "{}";
    unsigned char digest[EVP_MAX_MD_SIZE];
    char signature[2 * EVP_MAX_MD_SIZE + 1];
    unsigned int digest_size = 0;

    last_ms = now_ms();
    if (ended || !parent)
        return;
    char *head_end = message + sprintf(message, "{\"msg_id\":\"%d-text-%lu\",\"msg_type\":\"stream\",%s",
                                       (int)owner, ++sent, header_end);
    char *parent_end = stpcpy(head_end, parent);
    char *content = stpcpy(parent_end, metadata);
    char *end = content + sprintf(content, "{\"name\":\"%s\",\"text\":\"", kind ? "stderr" : "stdout");
    end = stpcpy(escape(end, (const unsigned char *)text, size), "\"}");

    HMAC(EVP_sha256(), key, (int)strlen(key), (unsigned char *)message, (size_t)(end - message),
         digest, &digest_size);
    for (unsigned int i = 0; i < digest_size; i++)
        sprintf(signature + 2 * i, "%02x", digest[i]);
    zmq_send(publisher, "<IDS|MSG>", 9, ZMQ_SNDMORE);
    zmq_send(publisher, signature, 2 * digest_size, ZMQ_SNDMORE);
    zmq_send(publisher, message, (size_t)(head_end - message), ZMQ_SNDMORE);
    zmq_send(publisher, head_end, (size_t)(parent_end - head_end), ZMQ_SNDMORE);
    zmq_send(publisher, metadata, strlen(metadata), ZMQ_SNDMORE);
    zmq_send(publisher, content, (size_t)(end - content), 0);
}

static void pass_held(void) {
    if (held == 0)
        return;
    pass_on(buffer, held, held_kind);
    held = 0;
}

/* How many bytes at the end are a character's first ones, without its last. */
static size_t unfinished(const char *text, size_t size) {
    for (size_t back = 1; back < CHARACTER_BYTES && back <= size; back++) {
        unsigned char c = (unsigned char)text[size - back];
        if ((c & 0xC0) == 0x80)
            continue;
        size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        return length > back ? back : 0;
    }
    return 0;
}

/* Of a descriptor, what has come since the last time; a character that is not whole is left
 * there for the next time, but not for the last. */
static void pass_descriptor(int kind, int last) {
    static char part[BUFFER_BYTES];
    struct stat file;
    int fd = kind + 1;
    if (fstat(fd, &file) != 0)
        return;
    while (file.st_size > seen[kind]) { /* not what comes in the meantime: that may have no end */
        ssize_t size = pread(fd, part, sizeof part, seen[kind]);
        if (size <= 0)
            return;
        if (!last || size == sizeof part)
            size -= (ssize_t)unfinished(part, (size_t)size);
        if (size == 0)
            return;
        pass_held();
        pass_on(part, (size_t)size, kind);
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, seen[kind], size);
        seen[kind] += size;
    }
}

static void pass_descriptors(int last) {
    pass_descriptor(0, last);
    pass_descriptor(1, last);
}

static void write_console(const char *text, int length, int kind) {
    size_t size = (size_t)length;
    kind = kind != 0;
    if (getpid() != owner || ended) {
        if (write(kind + 1, text, size) < 0)
            return;
        return;
    }
    take_lock();
    pass_descriptors(0);
    if (held && (held_kind != kind || held + size > sizeof buffer))
        pass_held();
    while (size > sizeof buffer) {
        size_t part = sizeof buffer - unfinished(text, sizeof buffer);
        pass_on(text, part, kind);
        text += part;
        size -= part;
    }
    memcpy(buffer + held, text, size);
    held += size;
    held_kind = kind;
    if (now_ms() - last_ms >= INTERVAL_MS)
        pass_held();
    leave_lock();
}

/* Programs that flush after each word are no reason for a message each. */
static void flush_console(void) {
    if (getpid() != owner)
        return;
    take_lock();
    if (now_ms() - last_ms >= FLUSH_MS)
        pass_held();
    leave_lock();
}

/* The thread: passes on what is due, while a cell runs. */
static void *watch(void *none) {
    pthread_mutex_lock(&mutex);
    while (!ended) {
        if (runs) {
            pthread_mutex_unlock(&mutex);
            usleep(INTERVAL_MS * 1000);
            pthread_mutex_lock(&mutex);
        } else {
            pthread_cond_wait(&begun, &mutex);
        }
        if (!runs || ended)
            continue;
        if (held && now_ms() - last_ms >= INTERVAL_MS)
            pass_held();
        pass_descriptors(0);
    }
    pthread_mutex_unlock(&mutex);
    return none;
}

static void pass_all(void) {
    if (getpid() != owner)
        return;
    fflush(stdout);
    take_lock();
    pass_held();
    pass_descriptors(1);
    leave_lock();
}

/* Passes on all that there is, and has an interrupt that waits take place, where it may. */
SEXP console_flush(void) {
    pass_all();
    R_CheckUserInterrupt();
    return R_NilValue;
}

/* Sends the parts of a message, each of them raw, by any socket of this process. */
SEXP console_send(SEXP socket, SEXP parts) {
    R_xlen_t count = XLENGTH(parts);
    if (getpid() != owner)
        return R_NilValue;
    take_lock();
    for (R_xlen_t i = 0; i < count && !ended; i++) {
        SEXP part = VECTOR_ELT(parts, i);
        zmq_send(R_ExternalPtrAddr(socket), RAW(part), (size_t)XLENGTH(part), i + 1 < count ? ZMQ_SNDMORE : 0);
    }
    leave_lock();
    return R_NilValue;
}

/* What is written from now on belongs to a cell: how its messages' headers end, and the
 * header of its request; NULL for both where nobody is to hear of it. */
SEXP console_begin(SEXP end_of_header, SEXP request) {
    if (getpid() != owner)
        return R_NilValue;
    take_lock();
    free(header_end);
    free(parent);
    free(message);
    header_end = parent = message = NULL;
    if (!isNull(request)) {
        const char *end = CHAR(STRING_ELT(end_of_header, 0)), *of = CHAR(STRING_ELT(request, 0));
        message = malloc(strlen(end) + strlen(of) + FRAME_BYTES + BUFFER_BYTES * ESCAPE_BYTES);
        header_end = strdup(end);
        parent = message && header_end ? strdup(of) : NULL;
    }
    runs = 1;
    pthread_cond_signal(&begun);
    leave_lock();
    if (!parent && !isNull(request))
        error("there is no memory for output");
    return R_NilValue;
}

SEXP console_end(void) {
    if (getpid() != owner)
        return R_NilValue;
    pass_all();
    take_lock();
    runs = 0;
    leave_lock();
    return R_NilValue;
}

/* Before the sockets are closed. */
SEXP console_stop(void) {
    if (getpid() != owner || ended)
        return R_NilValue;
    pass_all();
    take_lock();
    ended = 1;
    pthread_cond_signal(&begun);
    leave_lock();
    pthread_join(thread, NULL);
    return R_NilValue;
}

SEXP console_start(SEXP socket, SEXP secret) {
    pthread_attr_t attributes;
    publisher = R_ExternalPtrAddr(socket);
    if (snprintf(key, sizeof key, "%s", CHAR(STRING_ELT(secret, 0))) >= (int)sizeof key)
        error("the key is too long");
    owner = getpid();
    for (int fd = 1; fd <= 2; fd++) {
        int file = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND, 0600);
        if (file < 0 || dup2(file, fd) < 0)
            error("the console cannot be had");
        close(file);
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    take_lock(); /* with no signals for the thread either */
    int failed = pthread_create(&thread, &attributes, watch, NULL);
    leave_lock();
    pthread_attr_destroy(&attributes);
    if (failed)
        error("the console's thread cannot be had");
    R_Outputfile = NULL;
    R_Consolefile = NULL;
    ptr_R_WriteConsole = NULL;
    ptr_R_WriteConsoleEx = write_console;
    ptr_R_FlushConsole = flush_console;
    return R_NilValue;
}
