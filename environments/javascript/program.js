// Run before a program of files that is a process of its own (programs.js): what it puts out
// goes the way of what cells put out.
import { redirect } from "./output.js";

redirect(Deno.env.get("NOTEBOX_OUTPUT"));
Deno.env.delete("NOTEBOX_OUTPUT");
