package main

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboard reads the dashboard with Grafana's own types, which know every field, and checks the kinds of its
// panels and that each has a query.
func TestDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile("../../docs/how-to/podrun-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // perhaps an empty list
		t.Fatalf("Grafana would not read the dashboard as it is meant: %v", err)
	}
	var d dashboard.Dashboard
	if err := errors.Join(json.Unmarshal(text, &d), d.Validate()); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, p := range d.Panels {
		switch {
		case p.Panel == nil:
			t.Error("a panel is a row")
		case p.Panel.Type != "stat" && p.Panel.Type != "timeseries" && p.Panel.Type != "table":
			t.Errorf("panel %q is of type %q", *p.Panel.Title, p.Panel.Type)
		case len(p.Panel.Targets) == 0:
			t.Errorf("panel %q has no query", *p.Panel.Title)
		default:
			queries += len(p.Panel.Targets)
		}
	}
	if queries < 17 {
		t.Errorf("the dashboard has only %d queries", queries)
	}
}
