package agent_test

import (
	"context"
	"fmt"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
)

// A question is answered by a model, which is a script here, and an Executor.
func ExampleAgent_Ask() {
	model, err := agenttest.Start("127.0.0.1:0", agenttest.Script{Dialogues: []agenttest.Dialogue{{Turns: []agenttest.Turn{
		{Calls: []agenttest.Call{agenttest.Code("execute_python", "6*7")}}, {Text: "The program was: {{tool:ran (.*)}}"},
	}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "scripted", BaseURL: model.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: p}, Executor: &sandbox{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := a.Ask(context.Background(), agent.Question{Text: "What is 6 times 7?"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Text)
	// Output: The program was: 6*7
}
