module github.com/kith-io/kith/deploy/check

go 1.25.0
