package api

// Verified is the result of checking one image, or one record that belongs to no image any more.
type Verified struct {
	ID     string   // sha256:<hex>; "" for an unreadable record of a name
	Names  []string // normalised, sorted
	Layers int      // number of layers read
	Damage []Damage // none: the image is complete

	References []string // what the names stand for, as references by digest
	RecordFile string   // of an unreadable record
}

// Name returns a name of the image for the user.
func (v *Verified) Name() string {
	switch {
	case len(v.Names) > 0:
		return v.Names[0]
	case v.ID != "":
		return v.ID
	}
	return v.RecordFile
}

// Damage is one defect of an image.
type Damage struct {
	Layer string // sha256:<hex>; "" if a record is damaged
	What  string // usr/bin/env: its content has changed
}

// String returns the layer, if any, and what is wrong.
func (d Damage) String() string {
	if d.Layer == "" {
		return d.What
	}
	return "layer " + d.Layer + ": " + d.What
}
