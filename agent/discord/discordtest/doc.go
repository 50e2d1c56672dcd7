// Package discordtest is a Discord on loopback for tests of bots: a gateway, the part
// of the REST API that a bot needs, and a host of attachments. It checks what Discord
// checks of tokens, intents, sequence numbers and messages; it is a script all the same,
// and what passes against it has not been seen to work with Discord.
//
//  1. GET /api/v9/gateway names the gateway: Hello, then Identify, answered by READY, or
//     Resume, answered by what was missed and RESUMED, or by an invalid session.
//  2. Message and Interact dispatch events. They are kept for those who resume. Drop,
//     Reconnect and Invalidate are what goes wrong.
//  3. Messages that the bot sends are checked, kept, and returned by Sent. RateLimit has
//     the next ones refused with 429 first, TooLarge those with files with 413.
//  4. Attach keeps a file under an address like those of Discord's attachments.
package discordtest
