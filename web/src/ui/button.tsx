import type { ButtonHTMLAttributes, ReactNode } from 'react'
import { type CommandID, table } from '../lib/keys'
import { Icon, type IconName } from './icon'
import { Keys } from './keys'

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled'> {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  icon?: IconName
  // command shows the command's key, and its label where there are no children.
  command?: CommandID
  // whyNot switches the button off and says why. It stays where it is and can still be reached.
  whyNot?: string | undefined
  busy?: boolean
  children?: ReactNode
}

export function Button({
  kind = 'plain',
  icon,
  command,
  whyNot,
  busy,
  children,
  onClick,
  className,
  title,
  ...rest
}: ButtonProps) {
  const off = Boolean(whyNot) || busy
  const key = command && table[command].keys[0]
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${className ?? ''}`}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      aria-description={whyNot}
      title={whyNot ?? title}
      onClick={off ? (event) => event.preventDefault() : onClick}
    >
      {icon && <Icon name={icon} />}
      {children ?? (command && table[command].label)}
      {key && <Keys of={key} />}
    </button>
  )
}

// IconButton is a button with a sign alone; its label is read out and shown on pointing.
export function IconButton({
  label,
  icon,
  ...rest
}: Omit<ButtonProps, 'children' | 'icon' | 'command'> & { label: string; icon: IconName }) {
  return (
    <Button
      kind="quiet"
      {...rest}
      icon={icon}
      aria-label={label}
      title={label}
      className={`only-icon ${rest.className ?? ''}`}
    />
  )
}
