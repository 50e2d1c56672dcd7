// Package conversation is the service's side of the protocol with one sandbox: the one
// engine of single use and of sessions.
//
//  1. AwaitReady has the program inside start its kernel. From then on one goroutine
//     reads the stream for as long as the conversation goes on.
//  2. Keep makes the sandbox a session's, or Resume goes on with one that is. A
//     sandbox of single use stays as it is.
//  3. Begin sends a job. Its frames go to the job's mailbox, where Job.Receive takes
//     them: outputs, the outcome, the notebook, files. There is a deadline on each part.
//  4. In a session, job after job is sent, and channels and answers come beside them. In
//     single use the conversation is over with its job: open, one job, close.
//  5. A frame that nobody waits for, or the stream's end, is the end of the conversation.
//
// The frames are those of package frame. What comes is hostile: its size is bounded
// before memory is taken for it.
package conversation
