package api

// Verified is what was found of one image, or of a record that is no image's any more.
type Verified struct {
	ID     string   // sha256:<hex>; "" of a name's record that cannot be read
	Names  []string // normalised, sorted
	Layers int      // that were read
	Damage []Damage // none: the image is whole

	References []string // what the names stand for, as references by digest
	RecordFile string   // of a record that cannot be read
}

// Name is what a user calls the image.
func (v *Verified) Name() string {
	switch {
	case len(v.Names) > 0:
		return v.Names[0]
	case v.ID != "":
		return v.ID
	}
	return v.RecordFile
}

// Damage is one thing that is wrong with an image.
type Damage struct {
	Layer string // sha256:<hex>; "" if it is a record that is damaged
	What  string // usr/bin/env: its content has changed
}

func (d Damage) String() string {
	if d.Layer == "" {
		return d.What
	}
	return "layer " + d.Layer + ": " + d.What
}
