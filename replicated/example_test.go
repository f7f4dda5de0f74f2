// The example of the package, as godoc shows it.

package replicated_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/replicated"
)

// Who is online, on every node: added where somebody comes, read everywhere.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	online, err := replicated.Open(node, "online", replicated.ORSet[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	type names = replicated.ORSet[string]
	err = online.Update(ctx, replicated.Majority, func(s names, me kith.ID) names { return s.Add(me, "anna", "ben") })
	fmt.Println(online.Get().Has("anna"), online.Get().Len(), err)
	// Output: true 2 <nil>
}
