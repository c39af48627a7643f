import { useId } from 'react'

const names = Intl.supportedValuesOf('timeZone')

// Zones is a field for the name of a time zone, with the names that the browser has.
export function Zones({
  value,
  onChange,
  ...rest
}: {
  id?: string
  value: string
  placeholder?: string
  disabled?: boolean
  onChange: (value: string) => void
}) {
  const id = useId()
  return (
    <>
      <input {...rest} list={id} value={value} maxLength={64} onChange={(e) => onChange(e.target.value.trim())} />
      <datalist id={id}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}
