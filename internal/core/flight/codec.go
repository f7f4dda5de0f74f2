// Codec: the state of the machines of a node, and the commands that they are given, as bytes and back.
//
// The machines are plain values: no goroutine, channel, lock or socket is in them, which the code rules hold. So one
// walk over their types serves all of them, and a field that a machine gets tomorrow is in tomorrow's records. Bytes
// are read by a build with the same types only, see Layout.

package flight

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"sort"
	"unsafe"
)

// Errors of the codec; they come wrapped with what was met.
var (
	errTooLarge = errors.New("larger than its bound")
	errUnfit    = errors.New("not a plain value")
	errBroken   = errors.New("broken state")
)

// maxDepth bounds how deep values are nested.
const maxDepth = 2000

// object is a struct that a pointer may lead to.
type object struct {
	at  unsafe.Pointer
	typ reflect.Type
}

// encoder appends values to b.
type encoder struct {
	b     []byte
	limit int // of b; 0: none
	known map[object]uint64
	count uint64 // of the objects that were given numbers
	depth int
	mute  int  // above zero: what is walked is a copy, to which nothing points
	bare  bool // contents are left out
}

// appendValue appends what p points to, and returns b as it was with an error when it is not a plain value, or b would
// grow over limit bytes (0: no limit).
func appendValue(b []byte, p any, limit int) (out []byte, err error) {
	return appendTo(b, p, limit, false)
}

// appendBare is appendValue without the contents of what shards hand over.
func appendBare(b []byte, p any, limit int) (out []byte, err error) {
	return appendTo(b, p, limit, true)
}

func appendTo(b []byte, p any, limit int, bare bool) (out []byte, err error) {
	e := encoder{b: b, limit: limit, known: map[object]uint64{}, bare: bare}
	if err := e.value(reflect.ValueOf(p).Elem()); err != nil {
		return b, err
	}
	return e.b, nil
}

func (e *encoder) uvarint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

// register gives numbers to the structs that lie in v itself, so that pointers into them are found.
func (e *encoder) register(v reflect.Value) {
	if e.mute > 0 {
		return
	}
	walk(v, e.number)
}

func (e *encoder) number(o object) {
	e.known[o] = e.count // the newest, if a list is shared: it is read as several
	e.count++
}

// value appends v, which is addressable and was not reached through an unexported name.
func (e *encoder) value(v reflect.Value) error {
	if e.depth++; e.depth > maxDepth {
		return fmt.Errorf("%w: %s is nested too deeply", errUnfit, v.Type())
	}
	defer func() { e.depth-- }()
	if e.limit > 0 && len(e.b) > e.limit {
		return fmt.Errorf("%w of %d bytes", errTooLarge, e.limit)
	}
	switch v.Kind() {
	case reflect.Func:
		return nil // belongs to the node that is read into
	case reflect.Bool:
		if v.Bool() {
			e.b = append(e.b, 1)
		} else {
			e.b = append(e.b, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.b = binary.AppendVarint(e.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.uvarint(v.Uint())
	case reflect.Float32, reflect.Float64:
		e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(v.Float()))
	case reflect.String:
		e.uvarint(uint64(v.Len()))
		e.b = append(e.b, v.String()...)
	case reflect.Struct:
		return e.fields(v)
	case reflect.Array, reflect.Slice:
		return e.list(v)
	case reflect.Map:
		return e.table(v)
	case reflect.Pointer:
		return e.pointer(v)
	case reflect.Interface:
		return e.boxed(v)
	default:
		return fmt.Errorf("%w: %s", errUnfit, v.Type())
	}
	return nil
}

func (e *encoder) fields(v reflect.Value) error {
	switch t := v.Type(); {
	case t == addrType:
		text, err := v.Addr().Interface().(*netip.Addr).MarshalBinary()
		e.uvarint(uint64(len(text)))
		e.b = append(e.b, text...)
		return err
	case scratch[t.String()]:
		return nil
	}
	if e.depth == 1 {
		e.register(v)
	}
	for i := range v.NumField() {
		if e.bare && e.contents(v, v.Type().Field(i).Name, open(v.Field(i))) {
			continue
		}
		if err := e.value(open(v.Field(i))); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) list(v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			e.uvarint(0)
			return nil
		}
		e.uvarint(uint64(v.Len()) + 1)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			e.b = append(e.b, v.Bytes()...)
			return nil
		}
		mute := e.mute
		e.mute = 0
		defer func() { e.mute = mute }()
		e.register(v)
	}
	for i := range v.Len() {
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// table appends a map in the order of its encoded keys.
func (e *encoder) table(v reflect.Value) error {
	if v.IsNil() {
		e.uvarint(0)
		return nil
	}
	e.uvarint(uint64(v.Len()) + 1)
	e.mute++
	defer func() { e.mute-- }()
	type entry struct {
		key []byte
		at  reflect.Value
	}
	list := make([]entry, 0, v.Len())
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		from := len(e.b)
		key.Set(iter.Key())
		if err := e.value(key); err != nil {
			return err
		}
		list = append(list, entry{slices.Clone(e.b[from:]), iter.Key()})
		e.b = e.b[:from]
	}
	sort.Slice(list, func(i, k int) bool { return bytes.Compare(list[i].key, list[k].key) < 0 })
	for i := range list {
		e.b = append(e.b, list[i].key...)
		value.Set(v.MapIndex(list[i].at))
		if err := e.value(value); err != nil {
			return err
		}
	}
	return nil
}

// pointer appends 0 for none, 1 with what a new one points to, or the number of what has come before and 2.
func (e *encoder) pointer(v reflect.Value) error {
	if v.IsNil() {
		e.uvarint(0)
		return nil
	}
	if scratch[v.Type().Elem().String()] {
		e.uvarint(0)
		return nil
	}
	if at, ok := e.known[object{v.UnsafePointer(), v.Type().Elem()}]; ok {
		e.uvarint(at + 2)
		return nil
	}
	e.uvarint(1)
	mute := e.mute
	e.mute = 0
	defer func() { e.mute = mute }()
	if v.Type().Elem().Kind() != reflect.Struct {
		e.number(object{v.UnsafePointer(), v.Type().Elem()})
	} else {
		e.register(v.Elem())
	}
	return e.value(v.Elem())
}

// boxed appends an interface: the number of its type among those that are known, and its value. An error of another
// type is kept as its text.
func (e *encoder) boxed(v reflect.Value) error {
	if v.IsNil() {
		e.uvarint(0)
		return nil
	}
	inner := v.Elem()
	n, ok := boxedTypes.number[inner.Type()]
	if !ok {
		err, isError := inner.Interface().(error)
		if !isError {
			return fmt.Errorf("%w: a %s of type %s", errUnfit, v.Type(), inner.Type())
		}
		e.uvarint(1)
		e.uvarint(uint64(len(err.Error())))
		e.b = append(e.b, err.Error()...)
		return nil
	}
	e.uvarint(uint64(n) + 2)
	held := reflect.New(inner.Type()).Elem()
	held.Set(inner)
	e.mute++
	defer func() { e.mute-- }()
	return e.value(held)
}

// open returns a field as one that may be read and set whatever its name.
func open(f reflect.Value) reflect.Value {
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

// walk calls yield for v and each struct that lies in it, as far as pointers lead to structs of that type: fields,
// elements of arrays, and of v itself if it is a slice.
func walk(v reflect.Value, yield func(object)) {
	t := v.Type()
	if !shapeOf(t).holds {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if targets[t] {
			yield(object{v.Addr().UnsafePointer(), t})
		}
		for i := range t.NumField() {
			if f := t.Field(i).Type.Kind(); f == reflect.Struct || f == reflect.Array {
				walk(v.Field(i), yield)
			}
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), yield)
		}
	}
}
