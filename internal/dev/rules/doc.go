// Package rules tests the sources, the documents and the files of the
// repository against the rules of CONVENTIONS.md. It holds no code that others
// import.
package rules
