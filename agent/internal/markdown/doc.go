// Package markdown is what the agent and its surfaces know of Markdown: how a text is
// parsed, which links may stand in it, and how a text is written so that it is only one.
//
//  1. Parse reads GitHub's Markdown by goldmark. Its nodes know where they end, so that an
//     answer can be rewritten in its source.
//  2. Links are the addresses that may be led to. They are found as they are, as targets
//     of links, and with what follows an address in a sentence.
//  3. Escape, Code and Fence write text that nothing in it makes anything else of.
//
// agent.Links.Clean decides once what of an answer may lead somewhere. Each surface writes
// what is left in its own way: the console for a terminal, the bot for Discord.
package markdown
