package discord

import (
	"cmp"
	"time"
)

// Limits bound what a bot takes on. A zero field is DefaultLimits'.
type Limits struct {
	AtOnce      int   // questions and programs in all channels
	Waiting     int   // of one channel, behind the one that is worked on
	Channels    int   // whose conversations are kept
	Attachments int   // of one message
	Attachment  int64 // bytes of one attachment
	Files       int64 // bytes of attachments that all conversations keep
	Messages    int   // for one answer; a longer one is attached
}

// DefaultLimits are for a bot in a few guilds.
func DefaultLimits() Limits {
	return Limits{
		AtOnce:      4,         // more than code that two processors run at a time, as models take longer
		Waiting:     5,         // who is sixth waits for minutes
		Channels:    200,       // some 100 kB each
		Attachments: 10,        // as many as Discord takes in a message
		Attachment:  25 << 20,  // a table of half a million rows
		Files:       256 << 20, // they are in memory
		Messages:    8,         // 16,000 characters: nobody reads more in a chat
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	l.AtOnce = cmp.Or(l.AtOnce, d.AtOnce)
	l.Waiting = cmp.Or(l.Waiting, d.Waiting)
	l.Channels = cmp.Or(l.Channels, d.Channels)
	l.Attachments = cmp.Or(l.Attachments, d.Attachments)
	l.Attachment = cmp.Or(l.Attachment, d.Attachment)
	l.Files = cmp.Or(l.Files, d.Files)
	l.Messages = cmp.Or(l.Messages, d.Messages)
	return l
}

const (
	// DefaultUploadLimit is what Discord takes in a guild that nobody boosts, in bytes.
	DefaultUploadLimit = 10 << 20
	// maxAttached is how many files Discord takes in one message.
	maxAttached = 10
	// maxFiles bounds the images and files that are attached to one answer; the rest are
	// links.
	maxFiles = 20
	// typingPause is how often the typing indicator is renewed: Discord ends it after
	// ten seconds.
	typingPause = 8 * time.Second
	// requestTime bounds one request to Discord or for a file: some megabytes each way.
	requestTime = 2 * time.Minute
	// farewellTime bounds what is said to those whose question the end of the bot ends.
	farewellTime = 5 * time.Second
	// stopTime bounds the end of all that goes on.
	stopTime = 20 * time.Second
	// runTime bounds /run with its wait: Discord takes answers for 15 minutes.
	runTime = 14 * time.Minute
	// remembered is how many messages are known not to be answered again.
	remembered = 10_000
	// maxOutputMessages bounds what is shown of a program's output; all of it is attached
	// if that is more.
	maxOutputMessages = 3
	// uploads bounds what is attached to one answer, in Config.UploadLimit.
	uploads = 4
	// maxFileName bounds the name of an attachment, in bytes.
	maxFileName = 100
	// maxLinks is how many issued links of a channel are known to be safe: those of
	// some ten answers.
	maxLinks = 500
)
