// Package packaging has what `make release` adds to a binary: the description of the packages (nfpm.yaml), their
// files and scripts, and the programs for the bill of materials, the signature and the site of the documents. It is a Go module of its own,
// so that their libraries are none of podrun's.
package packaging
