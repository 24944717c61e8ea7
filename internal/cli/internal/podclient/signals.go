package podclient

import (
	"os"
	"os/signal"
	"sync"
)

// Signals delivers signals until stop, which closes the channel.
func Signals(sigs ...os.Signal) (arrived <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, sigs...)
	var once sync.Once
	return c, func() {
		once.Do(func() {
			signal.Stop(c)
			close(c)
		})
	}
}
