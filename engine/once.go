package engine

// Once returns what fill has derived in this step for key, such as a tree: fill is called
// when the step first asks for a T of this key. It gets what an earlier step left in its
// place, so that slices keep their memory: fill them from [:0].
func Once[T any](t *Tape, key any, fill func(*T)) *T {
	kind := any((*T)(nil))
	d, ok := t.derived[kind].(*derivations[T])
	if !ok {
		if t.derived == nil {
			t.derived = map[any]opPool{}
		}
		d = new(derivations[T])
		t.derived[kind] = d
	}
	for i, k := range d.keys {
		if k == key {
			return d.items[i]
		}
	}
	if len(d.keys) == len(d.items) {
		d.items = append(d.items, new(T))
	}
	item := d.items[len(d.keys)]
	d.keys = append(d.keys, key)
	fill(item)
	return item
}

// derivations are those of one type; items beyond the keys are from earlier steps.
type derivations[T any] struct {
	keys  []any
	items []*T
}

func (d *derivations[T]) rewind() { d.keys = d.keys[:0] }
