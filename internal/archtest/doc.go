// Package archtest checks the layout as tests: which package imports which, which package uses a
// third-party module, what a pure package must not use, how large files and functions get, and which
// words are retired. The tables with their reasons are in layout_test.go, layout_table_test.go and
// words_table_test.go.
//
// A failure names the file, the rule, its reason and what to do. Where the rule is wrong, change the table
// and docs/explanation/architecture.md together.
package archtest
