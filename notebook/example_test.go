package notebook_test

import (
	"errors"
	"fmt"

	"notebox/notebook"
)

func ExampleNew() {
	raw, err := notebook.New([]string{"print(1)"}, notebook.Kernel{
		Name: "python3", DisplayName: "Python 3", Language: "python",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(raw))
	// Output: {"cells":[{"cell_type":"code","execution_count":null,"id":"cell-0","metadata":{},"outputs":[],"source":"print(1)"}],"metadata":{"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"}},"nbformat":4,"nbformat_minor":5}
}

func ExampleAdopt() {
	own := []byte(`{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":[{"cell_type":"code","source":7}]}`)
	_, err := notebook.Adopt(own, notebook.Kernel{Name: "python3"})
	if invalid := new(notebook.InvalidError); errors.As(err, &invalid) {
		fmt.Println("field: ", invalid.Field)
		fmt.Println("reason:", invalid.Reason)
	}
	// Output:
	// field:  cells[0].source
	// reason: must be a string or a list of strings
}

func ExampleDecode() {
	executed := []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","execution_count":1,
		"metadata":{},"source":"print('hi')\n1/0","outputs":[
			{"output_type":"stream","name":"stdout","text":"hi\n"},
			{"output_type":"error","ename":"ZeroDivisionError","evalue":"division by zero",
			 "traceback":["\u001b[36mCell In[1], line 2\u001b[39m","ZeroDivisionError: division by zero"]}]}]}`)
	result, err := notebook.Decode(executed, notebook.Limits{})
	if err != nil {
		panic(err)
	}
	fmt.Print(notebook.Text(result, nil))
	fmt.Printf("%s in cell %d, line %d\n", result.Error.Name, result.Error.Cell, result.Error.Line)
	// Output:
	// hi
	// Cell In[1], line 2
	// ZeroDivisionError: division by zero
	// ZeroDivisionError in cell 0, line 2
}

// An output is shown while the run goes on; the final result names the same
// image the same.
func ExampleDecoder() {
	plot := `{"output_type":"display_data","metadata":{},"data":{"image/gif":"R0lGODlhAQABAAAAACw="}}`
	decoder := notebook.NewDecoder(notebook.Limits{})

	out, ok := decoder.Output(0, []byte(plot))
	blob := out.Data["image/gif"].Blob
	fmt.Println(ok, blob.Name, blob.Width, blob.Height)

	result, err := decoder.Decode([]byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"code","execution_count":1,"metadata":{},"source":"plot()","outputs":[` + plot + `]}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Print(notebook.Text(result, func(b *notebook.Blob) string { return "https://example.org/" + b.Name }))
	// Output:
	// true image_0.gif 1 1
	// [image image_0.gif: https://example.org/image_0.gif]
}

func ExamplePlain() {
	fmt.Println(notebook.Plain("\x1b[32m 50%\r100%\x1b[0m done"))
	// Output: 100% done
}
