package pod

import (
	"testing"
	"time"
)

// volumeOf returns a PersistentVolume of 10 bytes, ReadWriteOnce, without a class.
func volumeOf(name string, change func(o *Object, v *PersistentVolume)) *Object {
	o := &Object{Kind: KindVolume, Name: name, PersistentVolume: &PersistentVolume{Capacity: 10, AccessModes: []string{"ReadWriteOnce"}, Source: "hostPath"}}
	if change != nil {
		change(o, o.PersistentVolume)
	}
	return o
}

// claimOf returns a claim for 10 bytes, ReadWriteOnce, with the class "".
func claimOf(name string, change func(c *Claim)) *Object {
	o := &Object{Kind: KindClaim, Namespace: "default", Name: name, UID: "uid of " + name, Claim: &Claim{Request: 10, AccessModes: []string{"ReadWriteOnce"}, Class: new("")}}
	if change != nil {
		change(o.Claim)
	}
	return o
}

func byName(name string) func(c *Claim)   { return func(c *Claim) { c.VolumeName = name } }
func classed(class string) func(c *Claim) { return func(c *Claim) { c.Class = &class } }
func unclassed(c *Claim)                  { c.Class = nil }
func capacity(n int64) func(*Object, *PersistentVolume) {
	return func(_ *Object, v *PersistentVolume) { v.Capacity = n }
}
func reserved(c ClaimRef) func(*Object, *PersistentVolume) {
	return func(_ *Object, v *PersistentVolume) { v.Claim = &c }
}

// TestBindClaims has one line per rule: a claim "c" and the volumes, and the volume that it is bound to.
func TestBindClaims(t *testing.T) {
	manual := func(_ *Object, v *PersistentVolume) { v.Class = "manual" }
	for name, test := range map[string]struct {
		claim   *Object
		volumes []*Object
		want    string
	}{
		"the class":            {claimOf("c", classed("manual")), []*Object{volumeOf("a", nil), volumeOf("b", manual)}, "b"},
		"another class":        {claimOf("c", classed("fast")), []*Object{volumeOf("a", nil), volumeOf("b", manual)}, ""},
		"no class":             {claimOf("c", nil), []*Object{volumeOf("a", manual), volumeOf("b", nil)}, "b"},
		"the default class":    {claimOf("c", unclassed), []*Object{volumeOf("a", manual), volumeOf("b", nil)}, ""},
		"the smallest":         {claimOf("c", nil), []*Object{volumeOf("a", capacity(30)), volumeOf("b", capacity(20)), volumeOf("d", capacity(9))}, "b"},
		"too small":            {claimOf("c", nil), []*Object{volumeOf("a", capacity(9))}, ""},
		"fewest access modes":  {claimOf("c", nil), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) { v.AccessModes = append(v.AccessModes, "ReadOnlyMany") }), volumeOf("b", capacity(20))}, "b"},
		"all access modes":     {claimOf("c", func(c *Claim) { c.AccessModes = append(c.AccessModes, "ReadWriteMany") }), []*Object{volumeOf("a", nil)}, ""},
		"another machine's":    {claimOf("c", nil), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) { v.OtherNode = true })}, ""},
		"bound to another":     {claimOf("c", nil), []*Object{volumeOf("a", reserved(ClaimRef{"default", "d", "uid of d"}))}, ""},
		"reserved for another": {claimOf("c", nil), []*Object{volumeOf("a", reserved(ClaimRef{"other", "c", ""}))}, ""},
		"released":             {claimOf("c", nil), []*Object{volumeOf("a", reserved(ClaimRef{"default", "c", "old uid"}))}, ""},
		"reserved": {claimOf("c", classed("fast")), []*Object{volumeOf("a", nil), volumeOf("b", func(o *Object, v *PersistentVolume) {
			v.Claim, v.Class, v.Capacity = &ClaimRef{"default", "c", ""}, "manual", 99
		})}, "b"},
		"reserved for the default class": {claimOf("c", unclassed), []*Object{volumeOf("a", reserved(ClaimRef{"default", "c", ""}))}, "a"},
		"reserved but too small": {claimOf("c", nil), []*Object{volumeOf("a", func(o *Object, v *PersistentVolume) {
			v.Claim, v.Capacity = &ClaimRef{"default", "c", ""}, 9
		}), volumeOf("b", nil)}, "b"},
		"named":                      {claimOf("c", byName("b")), []*Object{volumeOf("a", nil), volumeOf("b", capacity(99))}, "b"},
		"named, missing":             {claimOf("c", byName("x")), []*Object{volumeOf("a", nil)}, ""},
		"named, too small":           {claimOf("c", byName("a")), []*Object{volumeOf("a", capacity(9)), volumeOf("b", nil)}, ""},
		"named, of another class":    {claimOf("c", byName("a")), []*Object{volumeOf("a", manual)}, ""},
		"named by the default class": {claimOf("c", func(c *Claim) { c.VolumeName, c.Class = "a", nil }), []*Object{volumeOf("a", manual)}, "a"},
		"named, bound to another":    {claimOf("c", byName("a")), []*Object{volumeOf("a", reserved(ClaimRef{"default", "d", "uid of d"}))}, ""},
		"named and reserved": {claimOf("c", func(c *Claim) { c.VolumeName, c.AccessModes = "a", []string{"ReadWriteMany"} }), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) {
			v.Claim, v.Class, v.Capacity = &ClaimRef{"default", "c", ""}, "manual", 9
		})}, "a"},
		"named and reserved, another machine's": {claimOf("c", byName("a")), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) {
			v.Claim, v.OtherNode = &ClaimRef{"default", "c", ""}, true
		})}, ""},
		"the selector":               {claimOf("c", func(c *Claim) { c.Selector = &Selector{[]Requirement{{"disk", "In", []string{"ssd"}}}} }), []*Object{volumeOf("a", nil), volumeOf("b", func(o *Object, _ *PersistentVolume) { o.Labels = map[string]string{"disk": "ssd"} })}, "b"},
		"a selector without a class": {claimOf("c", func(c *Claim) { c.Selector, c.Class = &Selector{}, nil }), []*Object{volumeOf("a", manual), volumeOf("b", nil)}, "b"},
		"a selector of no volume":    {claimOf("c", func(c *Claim) { c.Selector = &Selector{[]Requirement{{"disk", "Exists", nil}}} }), []*Object{volumeOf("a", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changed := BindClaims([]*Object{test.claim}, test.volumes, func(*Object) bool { return false })
			got := ""
			if v := BoundVolume(test.claim, test.volumes); v != nil {
				got = v.Name
			}
			if got != test.want || len(changed) > 1 || len(changed) == 1 && changed[0].Name != got {
				t.Errorf("bound to %q, changed %v, want %q", got, changed, test.want)
			}
			if again := BindClaims([]*Object{test.claim}, test.volumes, func(*Object) bool { return false }); len(again) > 0 {
				t.Errorf("a second run binds %s", again[0].Name)
			}
		})
	}
}

// TestBindClaimsInOrder: a claim that names a volume gets it, then the oldest claim; a claim with a
// directory gets none.
func TestBindClaimsInOrder(t *testing.T) {
	moment := func(o *Object, second int) *Object { o.CreatedAt = time.Unix(int64(second), 0); return o }
	provisioned, young, old, naming := claimOf("provisioned", nil), moment(claimOf("young", nil), 2), moment(claimOf("old", nil), 1), moment(claimOf("naming", byName("a")), 3)
	a, b := volumeOf("a", nil), volumeOf("b", nil)
	changed := BindClaims([]*Object{provisioned, young, old, naming}, []*Object{a, b}, func(o *Object) bool { return o == provisioned })
	if len(changed) != 2 || !a.PersistentVolume.IsBoundTo(naming) || !b.PersistentVolume.IsBoundTo(old) {
		t.Errorf("a is bound to %v, b to %v", a.PersistentVolume.Claim, b.PersistentVolume.Claim)
	}
}

// TestProvisions: podrun makes a directory for a claim that could not have a PersistentVolume only.
func TestProvisions(t *testing.T) {
	for name, test := range map[string]struct {
		claim *Object
		want  bool
	}{
		"the default class": {claimOf("c", unclassed), true},
		"a class":           {claimOf("c", classed("fast")), true},
		"no class":          {claimOf("c", nil), false},
		"a volume's name":   {claimOf("c", func(c *Claim) { c.VolumeName, c.Class = "a", nil }), false},
		"a selector":        {claimOf("c", func(c *Claim) { c.Selector, c.Class = &Selector{}, nil }), false},
	} {
		if got := test.claim.Claim.Provisions(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhyPending has the messages of the controller.
func TestWhyPending(t *testing.T) {
	for want, test := range map[string]struct {
		claim   *Object
		volumes []*Object
	}{
		"no persistent volumes available for this claim and no storage class is set": {claimOf("c", nil), nil},
		`persistentvolume "a" not found`:                                             {claimOf("c", byName("a")), nil},
		`volume "a" already bound to a different claim`:                              {claimOf("c", byName("a")), []*Object{volumeOf("a", reserved(ClaimRef{"default", "d", "x"}))}},
		`cannot bind to requested volume "a": requested PV is too small`:             {claimOf("c", byName("a")), []*Object{volumeOf("a", capacity(1))}},
		`cannot bind to requested volume "a": storageClassName does not match`:       {claimOf("c", byName("a")), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) { v.Class = "x" })}},
		`cannot bind to requested volume "a": incompatible accessMode`:               {claimOf("c", byName("a")), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) { v.AccessModes = nil })}},
		`cannot bind to requested volume "a": its nodeAffinity does not match this machine`: {claimOf("c", byName("a")), []*Object{volumeOf("a", func(_ *Object, v *PersistentVolume) {
			v.Claim, v.OtherNode, v.Capacity = &ClaimRef{"default", "c", ""}, true, 1
		})}},
	} {
		if got := WhyPending(test.claim, test.volumes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSelector(t *testing.T) {
	labels := map[string]string{"disk": "ssd", "rack": "1"}
	for name, test := range map[string]struct {
		selector *Selector
		want     bool
	}{
		"nil":           {nil, true},
		"empty":         {&Selector{}, true},
		"In":            {&Selector{[]Requirement{{"disk", "In", []string{"hdd", "ssd"}}}}, true},
		"not In":        {&Selector{[]Requirement{{"disk", "In", []string{"hdd"}}}}, false},
		"In, missing":   {&Selector{[]Requirement{{"x", "In", []string{""}}}}, false},
		"NotIn":         {&Selector{[]Requirement{{"disk", "NotIn", []string{"ssd"}}}}, false},
		"NotIn, others": {&Selector{[]Requirement{{"x", "NotIn", []string{"ssd"}}}}, true},
		"Exists":        {&Selector{[]Requirement{{"rack", "Exists", nil}}}, true},
		"DoesNotExist":  {&Selector{[]Requirement{{"rack", "DoesNotExist", nil}}}, false},
		"all":           {&Selector{[]Requirement{{"rack", "Exists", nil}, {"x", "Exists", nil}}}, false},
		"unknown":       {&Selector{[]Requirement{{"rack", "Gt", []string{"0"}}}}, false},
	} {
		if got := test.selector.Matches(labels); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
