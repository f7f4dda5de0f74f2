// Digest: a number that stands for everything that a value knows, so that a test sees whether it has changed.

package contract

import (
	"cmp"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
)

var seed = maphash.MakeSeed()

// Digest returns a number for what v and all that it points to hold, the same within one process for equal contents.
// Fields of v named in but are left out. Functions count as set or not; of a slice only what lies within its length.
func Digest(v any, but ...string) uint64 {
	d := digester{met: map[met]bool{}}
	root := reflect.ValueOf(v)
	for root.Kind() == reflect.Pointer {
		d.met[met{root.Pointer(), root.Type()}] = true
		root = root.Elem()
	}
	for i := range root.NumField() {
		if !slices.Contains(but, root.Type().Field(i).Name) {
			d.value(root.Field(i))
		}
	}
	return d.sum
}

// met is a pointer that was followed already.
type met struct {
	at uintptr
	of reflect.Type
}

type digester struct {
	sum uint64
	met map[met]bool
}

func (d *digester) add(n uint64) { d.sum = maphash.Comparable(seed, [2]uint64{d.sum, n}) }

func (d *digester) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		d.add(map[bool]uint64{false: 1, true: 2}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.add(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.add(v.Uint())
	case reflect.Float32, reflect.Float64:
		d.add(math.Float64bits(v.Float()))
	case reflect.String:
		d.add(maphash.String(seed, v.String()))
	case reflect.Slice:
		d.add(uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			d.add(maphash.Bytes(seed, v.Bytes()))
			return
		}
		d.elements(v)
	case reflect.Array:
		d.elements(v)
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	case reflect.Pointer:
		d.add(map[bool]uint64{false: 3, true: 4}[v.IsNil()])
		if key := (met{v.Pointer(), v.Type()}); !v.IsNil() && !d.met[key] {
			d.met[key] = true
			d.value(v.Elem())
		}
	case reflect.Interface:
		d.add(map[bool]uint64{false: 5, true: 6}[v.IsNil()])
		if !v.IsNil() {
			d.value(v.Elem())
		}
	case reflect.Map:
		d.entries(v)
	default: // functions
		d.add(map[bool]uint64{false: 7, true: 8}[v.IsZero()])
	}
}

func (d *digester) elements(v reflect.Value) {
	for i := range v.Len() {
		d.value(v.Index(i))
	}
}

// entries adds the entries of a map, by the digests of their keys.
func (d *digester) entries(v reflect.Value) {
	type entry struct {
		key   uint64
		value reflect.Value
	}
	var list []entry
	for walk := v.MapRange(); walk.Next(); {
		key := digester{met: map[met]bool{}}
		key.value(walk.Key())
		list = append(list, entry{key.sum, walk.Value()})
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	d.add(uint64(len(list)))
	for _, e := range list {
		d.add(e.key)
		d.value(e.value)
	}
}
