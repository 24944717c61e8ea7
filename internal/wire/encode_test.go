package wire

import (
	"encoding/json"
	"io"
	"reflect"
	"testing"
	"time"
)

// A request is written as encoding/json would write it, with every field that there is.
func TestRequestsAreWrittenAsTheLibraryWould(t *testing.T) {
	var req Request
	fill(reflect.ValueOf(&req).Elem())
	want, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	a, b := connPair(t)
	wrote := make(chan error, 1)
	go func() { wrote <- WriteRequest(a, req) }()
	got := make([]byte, headSize+len(want))
	if _, err := io.ReadFull(b, got); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if string(got[headSize:]) != string(want) {
		t.Errorf("%s\ninstead of\n%s", got[headSize:], want)
	}
}

// fill gives a value, and all in it, another than its zero one.
func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1, 2).UTC()))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a": 1}`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("a<b")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	default:
		if v.CanUint() {
			v.SetUint(7)
		} else {
			v.SetInt(-7)
		}
	}
}
