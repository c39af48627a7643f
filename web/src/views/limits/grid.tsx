import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react'
import { type Cell, move, paint, quietIn, type Week } from './week'

const names = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
const hours = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)
const words = { all: 'quiet', part: 'partly quiet', none: 'not quiet' }

// cellAt returns the hour that an element of the grid stands for.
function cellAt(target: EventTarget | null): Cell | undefined {
  const cell = target instanceof Element ? target.closest<HTMLElement>('[data-day]') : null
  return cell ? { day: Number(cell.dataset.day), hour: Number(cell.dataset.hour) } : undefined
}

// Grid is a week of hours, which one paints with the mouse, or with the arrow keys and Space. Shift with an arrow key
// makes the next hour like this one.
export function Grid({
  week,
  onChange,
  off,
}: {
  week: Week
  onChange: (week: Week) => void
  // off reports whether the week cannot be changed.
  off: boolean
}) {
  const [at, setAt] = useState<Cell>({ day: 0, hour: 0 })
  const table = useRef<HTMLDivElement>(null)
  const drag = useRef<{ from: Cell; week: Week; quiet: boolean }>(undefined)
  const byTouch = useRef(false)
  const toggle = (cell: Cell) => onChange(paint(week, cell, cell, quietIn(week, cell) !== 'all'))

  const keyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const to = move(at, event.key)
    if (event.key === ' ' && !event.repeat && !off) toggle(at)
    else if (!to) return
    event.preventDefault()
    if (!to) return
    if (event.shiftKey && !off) onChange(paint(week, at, to, quietIn(week, at) === 'all'))
    setAt(to)
    table.current?.querySelector<HTMLElement>(`[data-day='${to.day}'][data-hour='${to.hour}']`)?.focus()
  }
  const pointerDown = (event: PointerEvent) => {
    const cell = cellAt(event.target)
    byTouch.current = event.pointerType !== 'mouse'
    if (!cell || event.button !== 0) return
    setAt(cell)
    // A finger scrolls the page; what it taps is a click.
    if (off || byTouch.current) return
    const quiet = quietIn(week, cell) !== 'all'
    drag.current = { from: cell, week, quiet }
    onChange(paint(week, cell, cell, quiet))
  }
  const pointerOver = (event: PointerEvent) => {
    const cell = cellAt(event.target)
    const { current } = drag
    if (!cell || !current) return
    if (event.buttons === 0) drag.current = undefined
    else onChange(paint(current.week, current.from, cell, current.quiet))
  }
  return (
    <div
      ref={table}
      className="week"
      role="grid"
      tabIndex={-1}
      aria-label="Quiet hours of a week"
      aria-readonly={off || undefined}
      onKeyDown={keyDown}
      onPointerDown={pointerDown}
      onPointerOver={pointerOver}
      onPointerUp={() => {
        drag.current = undefined
      }}
      onClick={(event) => {
        const cell = cellAt(event.target)
        if (cell && byTouch.current && !off) toggle(cell)
      }}
    >
      <div role="row" tabIndex={-1}>
        <span role="columnheader" tabIndex={-1}>
          <span className="unseen">Hour</span>
        </span>
        {names.map((name) => (
          <span key={name} role="columnheader" tabIndex={-1} title={name}>
            {name.slice(0, 3)}
          </span>
        ))}
      </div>
      {hours.map((label, hour) => (
        <div key={label} role="row" tabIndex={-1}>
          <span role="rowheader" tabIndex={-1}>
            {label}
          </span>
          {names.map((name, day) => {
            const quiet = quietIn(week, { day, hour })
            return (
              <span
                key={name}
                role="gridcell"
                data-day={day}
                data-hour={hour}
                data-quiet={quiet}
                tabIndex={at.day === day && at.hour === hour ? 0 : -1}
                aria-selected={quiet !== 'none'}
                aria-label={`${name} ${label}, ${words[quiet]}`}
              />
            )
          })}
        </div>
      ))}
    </div>
  )
}
