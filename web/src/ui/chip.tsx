import type { ReactNode } from 'react'
import { Icon, type IconName } from './icon'
import type { Tone } from './state'

// Chip is a short fact beside others. With onRemove the chip can be taken away.
export function Chip({
  tone,
  icon,
  children,
  onRemove,
  removeLabel,
}: {
  tone?: Tone
  icon?: IconName
  children: ReactNode
  onRemove?: () => void
  removeLabel?: string
}) {
  return (
    <span className={`chip ${tone ? `tone-${tone}` : ''}`}>
      {icon && <Icon name={icon} />}
      {children}
      {onRemove && (
        <button type="button" className="chip-remove" onClick={onRemove} aria-label={removeLabel ?? 'Remove'}>
          <Icon name="cross" />
        </button>
      )}
    </span>
  )
}
