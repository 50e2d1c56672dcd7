// Package script runs a file on a notebox, for a person at a shell.
//
//  1. Source reads FILE, standard input or a text into a run: an .ipynb is a notebook, what has
//     an extension is a program of that name among the run's files, so that errors name it, and
//     all else is a cell.
//  2. Run sends it, and prints what the program puts out while it runs: its standard output, and
//     what it shows, to Stdout, all else to Stderr.
//  3. It fetches what was asked for: files and images into a folder, the executed notebook, a page
//     with code and outputs.
//  4. Its Exit says what became of the run, as a shell's exit status.
//
// What the program made is not trusted: on a terminal it is defused (package terminal), and
// names of files stay inside the folder (os.Root).
package script
