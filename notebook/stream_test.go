package notebook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func name(t *testing.T, out notebook.Output) string {
	t.Helper()
	require.NotNil(t, out.Data["image/png"].Blob)
	return out.Data["image/png"].Blob.Name
}

func names(t *testing.T, r *notebook.Result) []string {
	t.Helper()
	var all []string
	for _, out := range r.Outputs {
		all = append(all, name(t, out))
	}
	return all
}

func TestDecoderNamesStreamedBlobsOnce(t *testing.T) {
	a := display("image/png", base64JSON(pngOf(1, 1)))
	b := display("image/png", base64JSON(pngOf(2, 2)))
	for _, test := range []struct {
		desc     string
		streamed []string
		final    []string
		want     []string
	}{
		{"nothing was streamed", nil, []string{a, b, a}, []string{"image_0.png", "image_1.png", "image_2.png"}},
		{"all was", []string{a, b}, []string{a, b}, []string{"image_0.png", "image_1.png"}},
		{"equal plots are two images", []string{a, a}, []string{a, a}, []string{"image_0.png", "image_1.png"}},
		{"a new image has a new name", []string{a}, []string{b, a}, []string{"image_1.png", "image_0.png"}},
		{"a second occurrence too", []string{a}, []string{a, a}, []string{"image_0.png", "image_1.png"}},
		{"what was cleared leaves a gap", []string{a, b}, []string{b}, []string{"image_1.png"}},
	} {
		t.Run(test.desc, func(t *testing.T) {
			d := notebook.NewDecoder(notebook.Limits{})
			for i, raw := range test.streamed {
				out, ok := d.Output(3, []byte(raw))
				require.True(t, ok)
				require.Equal(t, 3, out.Cell)
				require.Equal(t, []string{"image_0.png", "image_1.png"}[i], name(t, out))
			}
			result, err := d.Decode(executed(test.final...))
			require.NoError(t, err)
			require.Equal(t, test.want, names(t, result))
		})
	}
}

func TestDecoderOutput(t *testing.T) {
	for _, test := range []struct {
		desc, raw string
		want      notebook.Output
		ok        bool
	}{
		{"a stream", stream("stdout", "a\r\n"), notebook.Output{Cell: 1, Type: notebook.TypeStream, Name: "stdout", Text: "a\n"}, true},
		{
			"an error", `{"output_type":"error","ename":"E","evalue":"m","traceback":["a","b"]}`,
			notebook.Output{Cell: 1, Type: notebook.TypeError, Name: "E", Message: "m", Traceback: "a\nb"}, true,
		},
		{"nothing to show", stream("stdout", "\x1b[0m"), notebook.Output{}, false},
		{"an update of a display, which nbformat does not have", `{"output_type":"update_display_data","data":{"text/plain":"x"}}`, notebook.Output{}, false},
		{"no output", `nonsense`, notebook.Output{}, false},
	} {
		t.Run(test.desc, func(t *testing.T) {
			out, ok := notebook.NewDecoder(notebook.Limits{}).Output(1, []byte(test.raw))
			require.Equal(t, test.ok, ok)
			require.Equal(t, test.want, out)
		})
	}
}

// A stream may not store more than a result may, and takes nothing from it.
func TestDecoderLimitsStreamAndResultEach(t *testing.T) {
	image := display("image/png", base64JSON(pngOf(1, 1)))
	d := notebook.NewDecoder(notebook.Limits{MaxBlobs: 1})
	_, ok := d.Output(0, []byte(image))
	require.True(t, ok)
	_, ok = d.Output(0, []byte(image))
	require.False(t, ok)

	result, err := d.Decode(executed(image))
	require.NoError(t, err)
	require.Empty(t, result.Dropped)
	require.Equal(t, []string{"image_0.png"}, names(t, result))
}
