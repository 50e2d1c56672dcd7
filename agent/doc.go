// Package agent answers questions by a model that writes code and notebox that runs
// it: the loop for those who have none of their own.
//
//	p, err := provider.Open(settings)
//	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: p}, Executor: executor})
//	answer, err := a.Ask(ctx, agent.Question{Text: "What is 5 factorial?"}, nil)
//
// The way of a question, in two roles that have a model, a prompt and an effort each:
//
//  1. The file agent, if there is a folder of the host, finds what the question is
//     about. It lists and reads files there, hands some over, and words the task for
//     the code agent. It cannot run code, and nothing that a sandbox printed or wrote
//     is ever in what it is sent: not even the answers to earlier questions.
//  2. The code agent is told the question, the task, and of each file its name, size
//     and beginning. It has one tool, which runs Python. It cannot see the host: files
//     go from the folder to the sandbox past it.
//  3. Its calls are read leniently (package tool) and run in order by an Executor, each
//     in a sandbox of its own, or all in one session where the Executor has those. The
//     outcome goes back as text within a budget of tokens.
//  4. A call that fails may be corrected Limits.Corrections times in one question. Then
//     the model gets one more turn, without the tool, to say what is wrong. Steps,
//     tokens and time are bounded as well; Answer.Stopped says which bound it was.
//  5. The answer is the code agent's text, past the file agent. It is not trusted, nor
//     is what it quotes: paths in /mnt/data become the links of the files there, links
//     that notebox issued in this conversation stay, and every other link or image,
//     however it is written, becomes plain text. See Links.
//
// Meanwhile a Sink hears of each piece of text, each call, each outcome and each step.
//
// Providers and Executors are interfaces here; the packages provider and remote have
// those that reach models and a notebox over HTTP. All was tested against scripted
// models (package agenttest), by the official clients of OpenAI and Anthropic.
package agent
