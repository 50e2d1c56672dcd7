// Package client is a notebox over HTTP, for Go programs.
//
//		notebox := client.New(client.Options{BaseURL: "http://127.0.0.1:8080"})
//		result, err := notebox.Execute(ctx, client.Run{Code: "print(6*7)"})
//
//	 1. A run is a form to POST /v1/execute, with the code and the files. The files are
//	    streamed from where they are.
//	 2. If somebody listens to the output, the client asks for events, else for JSON.
//	    Images come as links.
//	 3. What the code did is a Result, whatever it did. What notebox refuses, or fails at, is
//	    an *Error. If notebox is full, the client asks again when notebox says so, within
//	    bounds.
//
// A notebox describes the API itself at /openapi.json.
package client
