// A small line chart: lines over time, a cursor that the keyboard moves, and the same numbers as a table.
import { useId, useState } from 'react'
import { usePreferences } from '../lib/preferences'
import { clock, useNow, zoneName } from '../lib/time'
import { Button } from './button'
import { Table } from './table'

export interface Line<T> {
  name: string
  // like is the colour and the dashes of the line.
  like: 'waits' | 'good' | 'bad' | 'unknown' | 'calm' | 'person'
  value: (point: T) => number
}

export interface ChartProps<T extends { at: string }> {
  title: string
  points: readonly T[]
  // since and until bound the time that is drawn, and step is the longest time between two neighbours, in ms.
  since: number
  until: number
  step: number
  lines: readonly Line<T>[]
  // write returns a value with its unit.
  write: (value: number) => string
}

const [width, height] = [600, 100]

// top returns a round number that is at least as high as all values.
export function top(values: readonly number[]): number {
  const most = Math.max(0, ...values)
  if (most === 0) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= most * (1 - 1e-9))!
}

// draw returns the path of a line, which has gaps where a step has no point. A point between gaps is a dot.
export function draw(
  points: readonly (readonly [at: number, value: number])[],
  [since, until, step, most]: number[],
): string {
  let before = -Infinity
  return points
    .map(([at, value]) => {
      const x = (((at - since!) / (until! - since!)) * width).toFixed(1)
      const y = (height - (value / most!) * height).toFixed(1)
      const go = at - before > step! * 1.5 ? `M${x} ${y}h2` : `L${x} ${y}`
      before = at
      return go
    })
    .join('')
}

export function Chart<T extends { at: string }>({ title, points, since, until, step, lines, write }: ChartProps<T>) {
  const id = useId()
  const [cursor, setCursor] = useState<number>()
  const [asTable, setAsTable] = useState(false)
  const { zone } = usePreferences()
  const now = useNow(60_000)
  const most = top(points.flatMap((p) => lines.map((line) => line.value(p))))
  const last = points.length - 1
  const chosen = Math.min(cursor ?? last, last)
  const point = points[chosen]
  const time = (at: string | number) => clock(new Date(at), zone, now)
  const words =
    point && `${time(point.at)}: ${lines.map((line) => `${line.name} ${write(line.value(point))}`).join(', ')}`
  const x = point && ((Date.parse(point.at) - since) / (until - since)) * width
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption className="row">
        <h3 id={id} className="grow">
          {title}
        </h3>
        <Button kind="quiet" aria-expanded={asTable} aria-describedby={id} onClick={() => setAsTable(!asTable)}>
          {asTable ? 'Hide the table' : 'Show as table'}
        </Button>
      </figcaption>
      <p className="chart-legend row small">
        {lines.map((line) => (
          <span key={line.name} className="row nowrap">
            <svg width="16" height="8" viewBox="0 0 16 8" aria-hidden="true" focusable="false">
              <path className={`line-${line.like}`} d="M0 4h16" />
            </svg>
            {line.name} {point && <strong>{write(line.value(point))}</strong>}
          </span>
        ))}
      </p>
      <span className="faint small">{write(most)}</span>
      <svg
        className="chart-plot"
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        focusable="false"
      >
        {x !== undefined && cursor !== undefined && (
          <path className="chart-cursor" d={`M${x.toFixed(1)} 0V${height}`} />
        )}
        {lines.map((line) => (
          <path
            key={line.name}
            className={`line-${line.like}`}
            d={draw(
              points.map((p) => [Date.parse(p.at), line.value(p)] as const),
              [since, until, step, most],
            )}
          />
        ))}
      </svg>
      {point && (
        <input
          type="range"
          min={0}
          max={last}
          value={chosen}
          aria-label={`${title}: point in time`}
          aria-valuetext={words}
          onChange={(e) => setCursor(Number(e.target.value))}
        />
      )}
      <p className="row small muted">
        <span className="grow">{time(since)}</span>
        <span>{cursor !== undefined && point ? time(point.at) : ''}</span>
        <span className="chart-end">{time(until)}</span>
      </p>
      {asTable && (
        <Table
          caption={`${title}, times in ${zoneName(zone)}`}
          rows={points.toReversed()}
          keyOf={(p) => p.at}
          columns={[
            { name: 'Time', cell: (p) => time(p.at) },
            ...lines.map((line) => ({ name: line.name, number: true, cell: (p: T) => write(line.value(p)) })),
          ]}
        />
      )}
    </figure>
  )
}
