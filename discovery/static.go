// Static: a list that does not change, and several methods one after the other.

package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// static is a list of targets.
type static []Target

// Static returns a Discovery that always finds these targets, each as ParseTarget reads it. Errors wrap ErrBadConfig
// and join all faults.
func Static(list ...string) (Discovery, error) {
	var errs []error
	var targets []Target
	for _, s := range list {
		t, err := ParseTarget(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		targets = append(targets, t)
	}
	targets, err := Normalize(targets)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	return static(targets), nil
}

// Lookup returns the list.
func (s static) Lookup(ctx context.Context) ([]Target, error) {
	return slices.Clone([]Target(s)), ctx.Err()
}

// aggregate asks one after the other.
type aggregate []Discovery

// MaxAggregate is the most methods of one Aggregate.
const MaxAggregate = 16

// Aggregate returns a Discovery that asks the methods in turn: the first answer that names somebody is the answer. Each
// has what is left of ctx. When nobody names anybody the answer is empty, or the joined errors where one had failed: as
// long as one method cannot tell, nothing is known. At most MaxAggregate methods; errors wrap ErrBadConfig.
func Aggregate(methods ...Discovery) (Discovery, error) {
	if len(methods) == 0 || len(methods) > MaxAggregate || slices.Contains(methods, nil) {
		return nil, fmt.Errorf("%w: an aggregate of %d methods, must be 1 to %d, none of them nil", ErrBadConfig,
			len(methods), MaxAggregate)
	}
	return aggregate(slices.Clone(methods)), nil
}

// Lookup returns the first answer that names somebody.
func (a aggregate) Lookup(ctx context.Context) ([]Target, error) {
	var errs []error
	for _, d := range a {
		list, err := d.Lookup(ctx)
		if err == nil && len(list) > 0 {
			return list, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			return nil, errors.Join(append(errs, ctx.Err())...)
		}
	}
	return nil, errors.Join(errs...)
}
