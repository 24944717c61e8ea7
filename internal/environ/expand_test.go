package environ

import "testing"

// TestExpand has the cases of Kubernetes' own expansion test.
func TestExpand(t *testing.T) {
	vars := map[string]string{"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"$(VAR_A)":                   "A",
		"___$(VAR_B)___":             "___B___",
		"___$(VAR_C)":                "___C",
		"$(VAR_A)-$(VAR_B)":          "A-B",
		"$(VAR_A)$(VAR_B)":           "AB",
		"$(VAR_REF)":                 "$(VAR_A)",
		"%%$(VAR_REF)--$(VAR_REF)%%": "%%$(VAR_A)--$(VAR_A)%%",
		"foo$(VAR_EMPTY)bar":         "foobar",
		"foo$(VAR_Awhoops!":          "foo$(VAR_Awhoops!",
		"f00__(VAR_A)__":             "f00__(VAR_A)__",
		"$?_boo_$!":                  "$?_boo_$!",
		"$VAR_A":                     "$VAR_A",
		"$(VAR_DNE)":                 "$(VAR_DNE)",
		"$$$$$$(BIG_MONEY)":          "$$$(BIG_MONEY)",
		"$$$$$$(VAR_A)":              "$$$(VAR_A)",
		"$$$$$$$(VAR_A)":             "$$$A",
		"$VAR_A)":                    "$VAR_A)",
		"${VAR_A}":                   "${VAR_A}",
		"$(VAR_B)_______$(A":         "B_______$(A",
		"$(VAR_C)_______$(":          "C_______$(",
		"$(VAR_A)foobarzab$":         "Afoobarzab$",
		"foo-\\$(VAR_A":              "foo-\\$(VAR_A",
		"--$($($($($--":              "--$($($($($--",
		"$($($($($--foo$(":           "$($($($($--foo$(",
		"foo0--$($($($(":             "foo0--$($($($(",
		"$(foo$$var)":                "$(foo$$var)",
		"\n$(VAR_A)\n":               "\nA\n",
		"$$(VAR_A)":                  "$(VAR_A)",
		"$$(VAR_A) and ä$ö $(VAR_A)": "$(VAR_A) and ä$ö A",
	} {
		if got := expandWith(in, vars); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestExpandKnown(t *testing.T) {
	vars := map[string]string{"A": "a"}
	for in, want := range map[string]struct{ out, unknown string }{
		"$(A)/x":        {"a/x", ""},
		"$$(B)":         {"$(B)", ""},
		"$(B)/$(A)$(C)": {"$(B)/a$(C)", "B"},
	} {
		if out, unknown := ExpandKnown(in, vars); out != want.out || unknown != want.unknown {
			t.Errorf("%q: %q, unknown %q", in, out, unknown)
		}
	}
}

func TestLiteralStays(t *testing.T) {
	for _, s := range []string{"", "$", "$$", "$(A)", "$$(A)", "a$(", "ä$(A)$"} {
		if got := expandWith(Literal(s), map[string]string{"A": "a"}); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
