// Command bench (spike).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/countersign-dev/countersign/internal/worker"
)

func main() {
	url := flag.String("url", "", "")
	rurl := flag.String("river", "", "")
	n := flag.Int("n", 50000, "")
	conc := flag.Int("c", 2000, "")
	batch := flag.Int("b", 500, "")
	settlers := flag.Int("s", 2, "")
	prof := flag.String("prof", "", "")
	flag.Parse()
	ctx := context.Background()
	if *rurl != "" {
		i, b, err := riverBurn(ctx, *rurl, *n)
		fmt.Printf("river insert %.0f/s burn %.0f/s %v\n", float64(*n)/i.Seconds(), float64(*n)/b.Seconds(), err)
	}
	if *url != "" {
		h, err := newHouse(ctx, *url, 8)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		t := time.Now()
		if err := h.submit(ctx, fmt.Sprint(t.UnixNano()), *n, 1000); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("ours submit %.0f/s\n", float64(*n)/time.Since(t).Seconds())
		if *prof != "" {
			f, _ := os.Create(*prof)
			pprof.StartCPUProfile(f)
			defer pprof.StopCPUProfile()
		}
		d, err := h.burn(ctx, worker.Config{ID: "w", Concurrency: *conc, Batch: *batch, Settlers: *settlers})
		fmt.Printf("ours burn %.0f/s %v\n", float64(*n)/d.Seconds(), err)
	}
}
