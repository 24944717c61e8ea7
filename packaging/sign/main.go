// Command sign signs a file with a secret key of minisign, and writes FILE.minisig. $MINISIGN_PASSWORD is the
// key's password, if it has one. The same file, key and comment give the same signature.
//
//	sign KEY FILE COMMENT
package main

import (
	"fmt"
	"io"
	"os"

	"aead.dev/minisign"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sign KEY FILE COMMENT")
		os.Exit(2)
	}
	if err := sign(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func sign(keyFile, file, comment string) error {
	key, err := readKey(keyFile)
	if err != nil {
		return fmt.Errorf("read the secret key %s: %w", keyFile, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	hashed := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return err
	}
	return os.WriteFile(file+".minisig", hashed.SignWithComments(key, comment, "signature of podrun's release"), 0o644)
}

// readKey reads a secret key, with $MINISIGN_PASSWORD if it is encrypted.
func readKey(file string) (key minisign.PrivateKey, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return key, err
	}
	if !minisign.IsEncrypted(text) {
		return key, key.UnmarshalText(text)
	}
	password := os.Getenv("MINISIGN_PASSWORD")
	if password == "" {
		return key, fmt.Errorf("it is encrypted: set MINISIGN_PASSWORD")
	}
	return minisign.DecryptKey(password, text)
}
