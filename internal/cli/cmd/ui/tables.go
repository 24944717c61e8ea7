package ui

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	manifestprinters "github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
)

// tableKinds returns the kinds that the page shows as get does.
func tableKinds() []pod.ObjectKind {
	return append(pod.Workloads(), pod.KindService, pod.KindClaim, pod.KindVolume)
}

// imageTable is the page's kind for the rows of image ls.
const imageTable = "images"

// table is the header of a kind's rows on the page.
type table struct {
	Columns []string `json:"columns"`
}

// tableRow is a row of a table. The page counts elapsed time itself: a cell in a column of Since
// contains the text that follows it.
type tableRow struct {
	Cells  []string             `json:"cells"`
	Since  map[string]time.Time `json:"since,omitempty"` // by column
	Labels map[string]string    `json:"labels,omitempty"`
}

// newTableRow returns a row whose cells are under head.
func newTableRow(head, cells []string, since map[string]time.Time, labels map[string]string) tableRow {
	for column := range since {
		i := slices.Index(head, column)
		_, cells[i], _ = strings.Cut(cells[i], " ")
	}
	return tableRow{cells, since, labels}
}

// addTables adds the rows of get -A for all of tableKinds.
func (c *collection) addTables(s *pageSource) {
	options := &printers.PrintOptions{All: true}
	for _, kind := range tableKinds() {
		l, err := printers.List(s.quiet, s.dirs, kindnames.Query{Kind: kind}, options)
		c.check(err)
		if l == nil {
			continue
		}
		rows, err := options.Rows(l, false)
		if !c.check(err) {
			continue
		}
		c.add("tables", string(kind), table{rows[0]})
		for i := range l.Entries {
			e := &l.Entries[i]
			c.add(string(kind), e.Key(), newTableRow(rows[0], rows[i+1], e.Since, e.Labels))
		}
	}
}

// addImages adds the rows of image ls.
func (c *collection) addImages(s *pageSource) {
	images, err := s.images.List()
	c.check(err)
	head := printers.ImageHeader()
	c.add("tables", imageTable, table{head})
	for _, i := range images {
		for _, row := range printers.ImageRows(i, time.Now()) {
			c.add(imageTable, i.ID+" "+row[0], newTableRow(head, row, map[string]time.Time{"ADDED": i.Added}, nil))
		}
	}
}

// setTable is the page's kind for the rows of follow ls. It has a column for the last failure.
const setTable = "sets"

// addSets adds the rows of follow ls, if there are any.
func (c *collection) addSets(s *pageSource) {
	names, err := s.dirs.Sets()
	c.check(err)
	head := append(printers.SetHeader(), "LAST FAILURE")
	for _, name := range names {
		record, err := s.dirs.Set(name)
		if !c.check(err) || record == nil {
			continue
		}
		row := append(printers.SetRow(name, record, s.dirs.SetChanging(name), time.Now()), printers.SetFailure(record))
		since := map[string]time.Time{}
		if len(record.History) > 0 {
			since["CHANGED"] = record.History[len(record.History)-1].At
		}
		c.add(setTable, name, newTableRow(head, row, since, nil))
	}
	if len(names) > 0 {
		c.add("tables", setTable, table{head})
	}
}

// YAML returns what get -o yaml prints of a pod or a row of a table.
func (s *pageSource) YAML(kind, key string) ([]byte, error) {
	namespace, name, _ := strings.Cut(key, "/")
	q := kindnames.Query{Names: []string{name}}
	if kind != podTable {
		if q.Kind = pod.ObjectKind(kind); !slices.Contains(tableKinds(), q.Kind) {
			return nil, fmt.Errorf("the page shows no objects of kind %q", kind)
		}
	}
	options := &printers.PrintOptions{Namespace: namespace}
	var err error
	if options.Printer, _, err = manifestprinters.ParsePrinter("yaml", false); err != nil {
		return nil, err
	}
	l, err := printers.List(s.quiet, s.dirs, q, options)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = printers.PrintListings(&cmdutil.Env{Out: &text, ErrOut: io.Discard}, []*printers.Listing{l}, options, true)
	return text.Bytes(), err
}
