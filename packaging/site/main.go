// Command site makes a web site of podrun's documents: site TOP OUT. TOP is the repository, OUT the directory of
// the site. A link that leads nowhere is an error.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site TOP OUT")
		os.Exit(2)
	}
	pages, err := makeSite(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%s/index.html: %d pages, no dead links\n", os.Args[2], pages)
}
