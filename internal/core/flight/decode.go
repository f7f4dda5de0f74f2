// Decode: values from the bytes that the codec has made, into a node that is as new.

package flight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
)

// decoder reads values from b. It allocates in proportion to the bytes that are there.
type decoder struct {
	b     []byte
	known []object
	asked []*Asked // that were read
	depth int
	mute  int
	bare  bool   // contents were left out
	left  uint64 // bytes of them
}

// top reads what appendValue has appended, which must be all that there is, into what p points to. Functions, scratch
// memory, and the machines that functions belong to, stay those of p. An error leaves p half read.
func (d *decoder) top(p any) error {
	if err := d.value(reflect.ValueOf(p).Elem()); err != nil {
		return err
	}
	return extra(d.b)
}

func (d *decoder) fail(v reflect.Value, what string) error {
	return fmt.Errorf("%w: %s in %s, %d bytes before its end", errBroken, what, v.Type(), len(d.b))
}

func (d *decoder) uvarint(v reflect.Value) (uint64, error) {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		return 0, d.fail(v, "a cut number")
	}
	d.b = d.b[size:]
	return n, nil
}

// take returns the next n bytes, a view.
func (d *decoder) take(v reflect.Value, n uint64) ([]byte, error) {
	if n > uint64(len(d.b)) {
		return nil, d.fail(v, "a length beyond the end")
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b, nil
}

// some returns the next length, of things of least bytes each that are there; nil lists and tables have none.
func (d *decoder) some(v reflect.Value, least int) (n int, isNil bool, err error) {
	raw, err := d.uvarint(v)
	if err != nil || raw == 0 {
		return 0, true, err
	}
	if raw -= 1; raw > uint64(len(d.b)/max(1, least)) {
		return 0, false, d.fail(v, "a length beyond the end")
	}
	return int(raw), false, nil
}

func (d *decoder) register(v reflect.Value) {
	if d.mute == 0 {
		walk(v, func(o object) { d.known = append(d.known, o) })
	}
}

func (d *decoder) value(v reflect.Value) error {
	if d.depth++; d.depth > maxDepth {
		return d.fail(v, "too deep a nesting")
	}
	defer func() { d.depth-- }()
	switch v.Kind() {
	case reflect.Func:
		return nil
	case reflect.Struct:
		return d.fields(v)
	case reflect.Array, reflect.Slice:
		return d.list(v)
	case reflect.Map:
		return d.table(v)
	case reflect.Pointer:
		return d.pointer(v)
	case reflect.Interface:
		return d.boxed(v)
	}
	return d.plain(v)
}

// plain reads a number, a string or a truth.
func (d *decoder) plain(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		b, err := d.take(v, 1)
		if err == nil && b[0] > 1 {
			err = d.fail(v, "no truth")
		}
		if err == nil {
			v.SetBool(b[0] == 1)
		}
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(d.b)
		if size <= 0 || v.OverflowInt(n) {
			return d.fail(v, "a bad number")
		}
		d.b = d.b[size:]
		v.SetInt(n)
		return nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := d.uvarint(v)
		if err == nil && v.OverflowUint(n) {
			err = d.fail(v, "a bad number")
		}
		v.SetUint(n)
		return err
	case reflect.Float32, reflect.Float64:
		b, err := d.take(v, 8)
		if err == nil {
			v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		return err
	case reflect.String:
		text, err := d.text(v)
		v.SetString(text)
		return err
	}
	return d.fail(v, "no plain value")
}

func (d *decoder) text(v reflect.Value) (string, error) {
	n, err := d.uvarint(v)
	if err != nil {
		return "", err
	}
	b, err := d.take(v, n)
	return string(b), err
}

func (d *decoder) fields(v reflect.Value) error {
	switch t := v.Type(); {
	case t == addrType:
		n, err := d.uvarint(v)
		if err != nil {
			return err
		}
		b, err := d.take(v, n)
		if err != nil {
			return err
		}
		if err := v.Addr().Interface().(*netip.Addr).UnmarshalBinary(b); err != nil {
			return d.fail(v, err.Error())
		}
		return nil
	case scratch[t.String()]:
		return nil
	}
	if d.depth == 1 {
		d.register(v)
	}
	for i := range v.NumField() {
		if d.bare {
			if is, err := d.contents(v, v.Type().Field(i).Name, open(v.Field(i))); err != nil {
				return err
			} else if is {
				continue
			}
		}
		if err := d.value(open(v.Field(i))); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) list(v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		n, isNil, err := d.some(v, shapeOf(v.Type().Elem()).least)
		switch {
		case err != nil:
			return err
		case isNil:
			v.SetZero()
			return nil
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			b, err := d.take(v, uint64(n))
			copy(v.Bytes(), b)
			return err
		}
		mute := d.mute
		d.mute = 0
		defer func() { d.mute = mute }()
		d.register(v)
	}
	for i := range v.Len() {
		if err := d.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) table(v reflect.Value) error {
	t := v.Type()
	n, isNil, err := d.some(v, shapeOf(t.Key()).least+shapeOf(t.Elem()).least)
	switch {
	case err != nil:
		return err
	case isNil:
		v.SetZero()
		return nil
	}
	d.mute++
	defer func() { d.mute-- }()
	v.Set(reflect.MakeMapWithSize(t, n))
	key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for range n {
		key.SetZero()
		value.SetZero()
		if err := errors.Join(d.value(key), d.value(value)); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	if v.Len() != n {
		return d.fail(v, "a key twice")
	}
	return nil
}

func (d *decoder) pointer(v reflect.Value) error {
	inner := v.Type().Elem()
	n, err := d.uvarint(v)
	switch {
	case err != nil:
		return err
	case n == 0:
		if !scratch[inner.String()] {
			v.SetZero()
		}
		return nil
	case n >= 2:
		n -= 2
		if n >= uint64(len(d.known)) || d.known[n].typ != inner {
			return d.fail(v, "a pointer to nothing")
		}
		v.Set(reflect.NewAt(inner, d.known[n].at))
		return nil
	}
	if v.IsNil() || !inPlace[inner.String()] {
		v.Set(reflect.New(inner))
	}
	mute := d.mute
	d.mute = 0
	defer func() { d.mute = mute }()
	if inner.Kind() != reflect.Struct {
		d.known = append(d.known, object{v.UnsafePointer(), inner})
	} else {
		d.register(v.Elem())
	}
	if q, ok := v.Interface().(*Asked); ok {
		d.asked = append(d.asked, q)
	}
	return d.value(v.Elem())
}

func (d *decoder) boxed(v reflect.Value) error {
	n, err := d.uvarint(v)
	switch {
	case err != nil:
		return err
	case n == 0:
		v.SetZero()
		return nil
	case n == 1:
		text, err := d.text(v)
		if err == nil && !errorType.AssignableTo(v.Type()) {
			err = d.fail(v, "an error")
		}
		if err == nil {
			v.Set(reflect.ValueOf(errors.New(text)))
		}
		return err
	case n-2 >= uint64(len(boxedTypes.list)) || !boxedTypes.list[n-2].AssignableTo(v.Type()):
		return d.fail(v, "a type that does not belong here")
	}
	held := reflect.New(boxedTypes.list[n-2]).Elem()
	if v.Elem().IsValid() && v.Elem().Type() == held.Type() {
		held.Set(v.Elem()) // what is to be read in place
	}
	d.mute++
	defer func() { d.mute-- }()
	if err := d.value(held); err != nil {
		return err
	}
	v.Set(held)
	return nil
}
