// The page's own signs: 16 px, 1.5 stroke. A sign never stands alone: a word is beside it, or names the button it is
// in.
const strokes = {
  inbox: 'M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5a2.5 2.5 0 0 0 5 0H14',
  list: 'M5.5 4H14M5.5 8H14M5.5 12H14M2 4h.5M2 8h.5M2 12h.5',
  ladder: 'M5 1.5v13M11 1.5v13M5 4.5h6M5 8h6M5 11.5h6',
  letter: 'M2 3.5h12v9H2zM2 4l6 5 6-5',
  scales: 'M8 2v12M4.5 14h7M2.5 4.5h11M1.5 10 3.5 4.5 5.5 10a2 1.5 0 0 1-4 0zM10.5 10l2-5.5 2 5.5a2 1.5 0 0 1-4 0z',
  gauge: 'M2.5 12.5a6.25 6.25 0 1 1 11 0M8 9.5l3-3.5M8 10.25a1 1 0 1 0 0-2 1 1 0 0 0 0 2z',
  gear:
    'M8 10.25a2.25 2.25 0 1 0 0-4.5 2.25 2.25 0 0 0 0 4.5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2' +
    'M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4',
  fleet: 'M2 12.5h12M2 12.5V9l3-3 3 2.5 3.5-5L14 6',
  seal: 'M8 1.75 13 3.5v4c0 3.5-2 5.5-5 6.75-3-1.25-5-3.25-5-6.75v-4zM5.75 8l1.75 1.75L10.5 6',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 14 14',
  clock: 'M8 14.25A6.25 6.25 0 1 0 8 1.75a6.25 6.25 0 0 0 0 12.5zM8 4.5V8l2.5 1.5',
  check: 'M2.5 8.5 6 12l7.5-8',
  equals: 'M3 6h10M3 10h10',
  cross: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  barred: 'M8 14.25A6.25 6.25 0 1 0 8 1.75a6.25 6.25 0 0 0 0 12.5zM3.6 3.6l8.8 8.8',
  triangle: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5v.1',
  hourglass:
    'M4 1.75h8M4 14.25h8M4.5 1.75c0 4 3.5 4 3.5 6.25s-3.5 2.25-3.5 6.25M11.5 1.75c0 4-3.5 4-3.5 6.25s3.5 2.25 3.5 6.25',
  skip: 'M3 3.5 9 8l-6 4.5zM12.5 3.5v9',
  pause: 'M5 3v10M11 3v10',
  play: 'M4.5 2.5 13 8l-8.5 5.5z',
  undo: 'M5.5 3 2.5 6l3 3M2.5 6H10a3.5 3.5 0 0 1 0 7H6',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  link: 'M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7',
  filter: 'M2 3h12L9.5 8.5V13l-3-1.5v-3z',
  up: 'M3.5 10 8 5.5l4.5 4.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  pencil: 'M2.5 13.5 3.5 10l7-7 2.5 2.5-7 7zM9 4.5 11.5 7',
  refresh: 'M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 1.75V5h-3.25',
  person: 'M8 7.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5zM2.5 14a5.5 5.5 0 0 1 11 0',
  bell: 'M4 11.5V7a4 4 0 0 1 8 0v4.5l1.5 1h-11zM6.5 14h3',
  plug: 'M5.5 1.5v4M10.5 1.5v4M3.5 5.5h9v2a4.5 4.5 0 0 1-9 0zM8 12v2.5',
  wrench: 'M10 2.5a3.5 3.5 0 0 0-3.3 4.7L2.5 11.4a1.5 1.5 0 0 0 2.1 2.1l4.2-4.2A3.5 3.5 0 0 0 13.5 6L11 7.5 8.5 5z',
  question: 'M5.5 5.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .8-1 1.7M8 12.4v.1',
} as const

// Filled signs have no stroke of their own beside the ring.
const filled = {
  quarter: ['M8 14.25A6.25 6.25 0 1 0 8 1.75a6.25 6.25 0 0 0 0 12.5z', 'M8 8V1.75A6.25 6.25 0 0 1 14.25 8z'],
  half: ['M8 14.25A6.25 6.25 0 1 0 8 1.75a6.25 6.25 0 0 0 0 12.5z', 'M8 1.75a6.25 6.25 0 0 1 0 12.5z'],
  diamond: ['', 'M8 1 15 8l-7 7-7-7z'],
  dot: ['', 'M8 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z'],
} as const

export type IconName = keyof typeof strokes | keyof typeof filled

export function Icon({ name }: { name: IconName }) {
  const solid = name in filled ? filled[name as keyof typeof filled] : undefined
  const stroke = solid ? solid[0] : strokes[name as keyof typeof strokes]
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      {stroke && (
        <path
          d={stroke}
          fill="none"
          stroke="currentColor"
          strokeWidth="1.5"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      )}
      {solid && <path d={solid[1]} fill="currentColor" />}
    </svg>
  )
}
