import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Button } from './button'
import { Icon, type IconName } from './icon'

export interface MenuItem {
  label: ReactNode
  icon?: IconName
  whyNot?: string | undefined
  onChoose: () => void
}

// Menu is a button that opens a short list of what one can do.
export function Menu({ label, icon = 'menu', items, kind = 'quiet' }: { label: string; icon?: IconName; items: readonly MenuItem[]; kind?: 'quiet' | 'plain' }) {
  const [open, setOpen] = useState(false)
  const whole = useRef<HTMLDivElement>(null)
  const id = useId()
  const close = (andFocus: boolean) => {
    setOpen(false)
    if (andFocus) whole.current?.querySelector('button')?.focus()
  }
  useEffect(() => {
    if (!open) return
    whole.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus()
    const outside = (event: Event) => !whole.current?.contains(event.target as Node) && setOpen(false)
    document.addEventListener('pointerdown', outside)
    return () => document.removeEventListener('pointerdown', outside)
  }, [open])
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'Escape' || event.key === 'Tab') close(event.key === 'Escape')
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape' || step) event.preventDefault()
    if (!step) return
    const all = [...(whole.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
    all[(all.indexOf(document.activeElement as HTMLElement) + step + all.length) % all.length]?.focus()
  }
  return (
    <div className="menu" ref={whole}>
      <Button kind={kind} icon={icon} aria-label={label} title={label} aria-haspopup="menu" aria-expanded={open} aria-controls={open ? id : undefined} className="only-icon" onClick={() => setOpen(!open)} />
      {open && (
        <div className="menu-items" role="menu" id={id} aria-label={label} onKeyDown={keys}>
          {items.map((item, at) => (
            <button
              key={at} type="button" role="menuitem" tabIndex={-1} aria-disabled={Boolean(item.whyNot) || undefined} title={item.whyNot}
              onClick={() => {
                if (item.whyNot) return
                close(true)
                item.onChoose()
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}
