// Package telemetry sets up the logs, metrics and traces of a process: JSON logs
// without secrets, metrics for Prometheus and OTLP, and traces that continue
// through the outbox. It owns the names of the metrics, the secret log keys, and
// the listener for probes.
//
// Packages receive the result of Setup. The only global state is the handler of
// OpenTelemetry's own errors, since OpenTelemetry has one per process. Without a
// collector traces cost next to nothing, and metrics are only scraped.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names this project's instruments and spans.
const scope = "github.com/countersign-dev/countersign"

// Config configures the telemetry of a process. The zero value discards logs and
// exports nothing.
type Config struct {
	// Service is the process's name, such as countersign-worker.
	Service string
	// Instance distinguishes the processes of a service; empty means the host's
	// name and the process id.
	Instance string
	// Level is the minimum level of logged records.
	Level slog.Level
	// Log receives one JSON object per line; nil discards them.
	Log io.Writer
	// Endpoint is the base URL of an OTLP/HTTP collector, in the syntax of
	// OTEL_EXPORTER_OTLP_ENDPOINT. Empty exports nothing. The other variables of
	// the OTLP exporters (headers, certificates, timeouts) apply as usual.
	Endpoint string
}

// Telemetry holds the logger, the metrics and the exporters of a process. Call
// Shutdown when the process ends.
type Telemetry struct {
	// Log is the process's logger.
	Log *slog.Logger
	// Metrics are the instruments.
	Metrics *Metrics

	tracers  trace.TracerProvider
	meter    metric.Meter
	registry *prometheus.Registry
	closers  []func(context.Context) error
}

// Setup creates the logger, the instruments and, with an endpoint, the
// exporters. It does not connect: while a collector is unavailable, only its
// spans are lost.
func Setup(ctx context.Context, config Config) (*Telemetry, error) {
	t := &Telemetry{
		Log:      slog.New(slog.DiscardHandler),
		tracers:  noop.NewTracerProvider(),
		registry: prometheus.NewRegistry(),
	}
	if config.Log != nil {
		t.Log = NewLogger(config.Log, config.Level)
		LogErrors(t.Log)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", config.Service),
		attribute.String("service.version", Version()),
		attribute.String("service.instance.id", cmp.Or(config.Instance, instance())),
	)
	if err := t.setUp(ctx, config.Endpoint, about); err != nil {
		return nil, errors.Join(fmt.Errorf("set up telemetry: %w", err), t.Shutdown(ctx))
	}
	return t, nil
}

// LogErrors makes OpenTelemetry log its own errors, such as a failed gauge,
// instead of writing them to standard error: at most one line per minute and
// message.
func LogErrors(log *slog.Logger) {
	log = slog.New(WithoutRepeats(log.Handler(), time.Minute))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Error("metrics or traces failed", slog.Any("error", err))
	}))
}

func (t *Telemetry) setUp(ctx context.Context, endpoint string, about *resource.Resource) error {
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	scraped, err := otelprometheus.New(
		otelprometheus.WithRegisterer(t.registry),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo(),
	)
	if err != nil {
		return err
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(scraped)}

	if endpoint != "" {
		pushed, err := t.dial(ctx, endpoint, about)
		if err != nil {
			return err
		}
		options = append(options, sdkmetric.WithReader(pushed))
	}
	meters := sdkmetric.NewMeterProvider(options...)
	t.closers = append(t.closers, meters.Shutdown)
	t.meter = meters.Meter(scope)
	t.Metrics, err = NewMetrics(t.meter)
	return err
}

// dial creates the exporters to a collector: spans in batches, metrics once a
// minute.
func (t *Telemetry) dial(ctx context.Context, endpoint string, about *resource.Resource) (sdkmetric.Reader, error) {
	base, err := url.Parse(endpoint)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("OTLP endpoint is not an http or https URL")
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, err
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(spans))
	t.tracers = tracers
	t.closers = append(t.closers, tracers.Shutdown)

	metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base.JoinPath("v1/metrics").String()))
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewPeriodicReader(metrics), nil
}

// Tracer returns the tracer for this project's spans. They record nothing unless
// an endpoint is configured.
func (t *Telemetry) Tracer() trace.Tracer { return t.tracers.Tracer(scope) }

// Meter returns the meter for instruments of other packages.
func (t *Telemetry) Meter() metric.Meter { return t.meter }

const (
	// scrapeWithin bounds the time for gathering the metrics, and maxScrapes the
	// number of concurrent scrapes.
	scrapeWithin = 20 * time.Second
	maxScrapes   = 10
)

// Handler serves the metrics in the format of Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry, Timeout: scrapeWithin, MaxRequestsInFlight: maxScrapes})
}

// flushWithin bounds how long Flush may take.
const flushWithin = 5 * time.Second

// Flush is Shutdown for the end of a process, whose context may have ended.
func (t *Telemetry) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
	defer cancel()
	return t.Shutdown(ctx)
}

// Version returns the version that the program was built from, or "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return "devel"
	}
	return cmp.Or(info.Main.Version, "devel")
}

// instance returns a name that is unique among running processes.
func instance() string {
	host, _ := os.Hostname() // empty on an error
	return fmt.Sprintf("%s-%d", cmp.Or(host, "localhost"), os.Getpid())
}

// Shutdown sends buffered data and stops the exporters, within the deadline of
// ctx.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, closer := range t.closers {
		errs = append(errs, closer(ctx))
	}
	t.closers = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("shut down telemetry: %w", err)
	}
	return nil
}
