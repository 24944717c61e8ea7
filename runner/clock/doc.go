// Package clock reads the clocks that lifecycle decisions depend on.
package clock
