// Orders-go stores an order and proposes an action about it in one transaction:
// either both happen or neither.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: orders-go ORDER CUSTOMER")
		os.Exit(1)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, order, customer string) error {
	// A login that `countersign db-login bind` lets propose.
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }()
	args, err := json.Marshal(map[string]string{"title": "Order " + order, "body": "of " + customer})
	if err != nil {
		return err
	}
	var id envelope.ActionID
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (order_no, customer) VALUES ($1, $2)", order, customer); err != nil {
			return err
		}
		id, err = client.ProposeTx(ctx, tx, envelope.Proposal{
			Type: envelope.TypeExec, ExternalID: "order " + order,
			Tool: envelope.Tool{Source: "notes", Name: "notes.create"}, Args: args,
		})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println("proposed:", id)
	return nil
}
