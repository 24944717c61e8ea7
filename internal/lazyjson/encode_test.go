package lazyjson

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"
)

type stamp struct{ n int }

func (s *stamp) MarshalJSON() ([]byte, error) { return json.Marshal([]int{s.n}) }
func (s *stamp) IsZero() bool                 { return s.n == 7 }

type inner struct {
	Inlined string `json:"inlined,omitempty"`
	Plain   int
}

type Pointed struct {
	Behind string `json:"behind"`
}

type word string

type everything struct {
	inner    `json:",inline"`
	*Pointed `json:",inline"`
	Named    inner  `json:"named"`
	Text     string `json:"text"`
	Word     word   `json:"word,omitempty"`
	Yes      bool   `json:"yes,omitempty"`
	No       *bool  `json:"no"`
	Small    int8   `json:"small"`
	Large    *int64 `json:"large,omitempty"`
	Unsigned []uint32
	Part     float64
	Bytes    []byte
	Raw      json.RawMessage `json:"raw,omitempty"`
	List     []inner         `json:"list"`
	Full     []inner         `json:"full,omitempty"`
	Pointers []*inner
	Map      map[word]inner
	Times    map[string]stamp
	Numbers  map[int]string
	Time     time.Time  `json:"time,omitempty"`
	Later    time.Time  `json:"later,omitzero"`
	Never    *time.Time `json:"never,omitzero"`
	Stamp    stamp      `json:"stamp"`
	Seven    stamp      `json:"seven,omitzero"`
	Struct   inner      `json:"struct,omitzero"`
	Address  netip.Addr `json:"address"`
	Any      any
	Array    [2]int `json:"array,omitempty"`
	Skipped  string `json:"-"`
	Dash     string `json:"-,"`
	hidden   string
}

// TestAsTheLibrary holds it against encoding/json.
func TestAsTheLibrary(t *testing.T) {
	large := int64(1) << 40
	full := everything{
		inner: inner{"i", 1}, Pointed: &Pointed{"b"}, Named: inner{Plain: 2}, Text: "<a> & \"b\"\\\n\u2028\x80é", Word: "w",
		Yes: true, No: new(bool), Small: -3, Large: &large, Unsigned: []uint32{1, 1 << 31}, Part: 1e-9, Bytes: []byte("bytes"),
		Raw: json.RawMessage(`{"a": [1, "<"]}`), List: []inner{{"a", 1}, {}}, Full: []inner{{}}, Pointers: []*inner{nil, {"p", 1}},
		Map: map[word]inner{"b<": {"x", 1}, "a": {}}, Times: map[string]stamp{"x": {1}}, Numbers: map[int]string{10: "a", 9: "b"},
		Time: time.Unix(1, 2).UTC(), Later: time.Unix(3, 0).UTC(), Never: new(time.Time), Stamp: stamp{4}, Seven: stamp{7}, Struct: inner{"s", 0},
		Address: netip.MustParseAddr("::1"), Any: map[string]any{"b": 1, "a": []any{nil, "<"}}, Skipped: "no", Dash: "yes", hidden: "no",
	}
	empty := full
	empty.Map, empty.List, empty.Full, empty.Bytes = map[word]inner{}, []inner{}, []inner{}, []byte{}
	empty.Seven = stamp{8}
	for _, v := range []any{nil, 1, "a", (*everything)(nil), &everything{}, everything{}, &full, full, &empty, []everything{full}, map[string]*everything{"a": &full}} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%T:\n%s\ninstead of\n%s", v, got, want)
		}
	}
}

func TestErrorsAreTold(t *testing.T) {
	for _, v := range []any{func() {}, map[string]any{"a": make(chan int)}, []struct{ F any }{{func() {}}}, json.RawMessage("{")} {
		if _, err := Marshal(v); err == nil {
			t.Errorf("%T is encoded", v)
		}
	}
}
