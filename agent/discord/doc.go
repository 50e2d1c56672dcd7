// Package discord is an agent as a bot on Discord, over github.com/bwmarrin/discordgo.
//
// How a message is answered:
//
//  1. The gateway tells of it. It counts once, however often Discord says it again
//     after a connection broke, and only if Config.Guilds and Config.Users allow its
//     guild and its author: see access. Nobody is allowed by default.
//  2. It is a question if it is a direct message, mentions the bot, or is in a thread
//     in which the bot was asked before. What it asks waits behind the questions of its
//     channel before it, and for one of Limits.AtOnce places.
//  3. Its attachments are fetched, from Discord's hosts alone, within bounds, and are
//     files of the question. The typing indicator is on meanwhile.
//  4. The agent answers in the channel's conversation, which is in memory and bounded in
//     questions, tokens and bytes. The conversations that nobody used for longest are
//     forgotten when there are too many.
//  5. The answer becomes Discord's Markdown: what is an attachment is no link, no foreign
//     link leads anywhere, code is in fences that Discord reads. Split makes messages
//     of it; each mentions nobody and has no embeds.
//  6. Images and files are fetched from notebox and attached up to Config.UploadLimit;
//     what is larger, or cannot be fetched, is a link.
//
// The command /run runs code itself, without the model: given with the command, or in
// a dialogue, which has room for lines.
//
// Rate limits are discordgo's affair: it counts what Discord says of each route, and
// waits. So is the gateway: it resumes after a break.
package discord
