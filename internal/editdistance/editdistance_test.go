package editdistance

import "testing"

func TestOf(t *testing.T) {
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"", "up"}: 2, {"up", "up"}: 0, {"exce", "exec"}: 1, {"imge", "image"}: 1, {"logss", "logs"}: 1, {"kitten", "sitting"}: 3,
	} {
		if got := Of(words[0], words[1]); got != want {
			t.Errorf("%q: %d, want %d", words, got, want)
		}
	}
}
