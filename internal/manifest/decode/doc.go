// Package decode reads the objects of YAML and JSON files. It reports every mistake with its line, and
// bounds the time and memory that a hostile file can take.
package decode
