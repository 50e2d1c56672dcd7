// Package console is a person's way to an agent: questions at a prompt of a terminal,
// or one question of a program.
//
//  1. Interact reads lines, with editing, history and completion (Terminal), and asks
//     the agent in one Conversation. An interrupt ends the answer under way, not the
//     console. Once asks one question.
//  2. While an answer is under way, a view shows what goes on: a spinner, each code with
//     its syntax highlighted, each outcome, and what the model says between.
//  3. The answer is Markdown, rendered for the terminal; images are shown by kitty's,
//     iTerm2's or sixel's protocol where the terminal has one (package terminal), and named with
//     their links in any case, as are files.
//
// What a model or a sandbox says is not trusted with the terminal. Each text is defused
// before anything is made of it: escape sequences are taken out, and what remains of
// control characters is replaced by visible ones. Rendered Markdown then passes a gate
// that lets only colours through, and links that this notebox issued in this
// conversation. Images are sent as pixels that were decoded and encoded here.
package console
