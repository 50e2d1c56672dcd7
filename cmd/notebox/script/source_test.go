package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/client"
)

func TestInterpreter(t *testing.T) {
	for _, c := range []struct{ desc, text, language string }{
		{"none", "print(1)", ""},
		{"a program", "#!/bin/bash\necho", "bash"},
		{"env", "#!/usr/bin/env python3\n", "python3"},
		{"env with options", "#!/usr/bin/env -S node --no-warnings\n", "node"},
		{"R", "#!/usr/bin/Rscript --vanilla", "r"},
		{"nothing after it", "#!", ""},
		{"only env", "#!/usr/bin/env", ""},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.language, interpreter([]byte(c.text))) })
	}
}

func TestSource(t *testing.T) {
	const book = `{"nbformat": 4, "cells": []}`
	code := "1"
	for _, c := range []struct {
		desc string
		o    Options
		run  client.Run
	}{
		{"code", Options{Code: &code, Path: ""}, client.Run{Code: "1"}},
		{"standard input", Options{Path: "-", Stdin: strings.NewReader("#!/bin/sh\n1")}, client.Run{Code: "#!/bin/sh\n1", Language: "sh"}},
		{"a language that is given", Options{Path: "-", Language: "r", Stdin: strings.NewReader("#!/bin/sh\n1")}, client.Run{Code: "#!/bin/sh\n1", Language: "r"}},
		{"a notebook", Options{Path: "-", Stdin: strings.NewReader("\n " + book)}, client.Run{Notebook: []byte("\n " + book)}},
		{"JSON that is none", Options{Path: "-", Stdin: strings.NewReader(`{"nbformat": 4}`)}, client.Run{Code: `{"nbformat": 4}`}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			run := client.Run{Language: c.o.Language}
			require.NoError(t, source(&run, c.o))
			require.Equal(t, c.run, run)
		})
	}
}
