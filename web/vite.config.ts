import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// firstLoad reports whether a module is loaded with the page, rather than with a view that comes later.
function firstLoad(id: string, importers: (id: string) => readonly string[] | undefined, seen = new Set<string>()) {
  if (id.endsWith('src/main.tsx')) return true
  if (seen.has(id)) return false
  seen.add(id)
  return (importers(id) ?? []).some((each): boolean => firstLoad(each, importers, seen))
}

// The names of built files carry no hash: web/dist is committed, and the server puts the digest of the whole folder
// into the path instead.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    target: 'es2023',
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: 'main.js',
        // A view's part of the page is named after its folder.
        chunkFileNames: ({ facadeModuleId }) =>
          `${/views\/([a-z-]+)\//.exec(facadeModuleId ?? '')?.[1] ?? '[name]'}.js`,
        // What is loaded first is one file: browsers ask for six at once, and the first requests of data are among them.
        manualChunks: (id, { getModuleInfo }) =>
          firstLoad(id, (one) => getModuleInfo(one)?.importers) ? 'app' : undefined,
        assetFileNames: ({ names }) => (names.some((name) => name.endsWith('.css')) ? 'index.css' : '[name][extname]'),
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/auth': 'http://127.0.0.1:8080' } },
  test: {
    include: ['src/**/*.test.ts', 'src/**/*.test.tsx'],
    isolate: false,
  },
})
