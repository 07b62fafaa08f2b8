// All rectangles of a frame in one instanced call. Boxes come in pixels from the processor, which has doubles: times of
// 2^53 ns would not survive the 32-bit floats of a graphics device.
import type { Frame } from "./frame";
import { MOST } from "./frame";
import type { Palette } from "./palette";
import { shadeOf } from "./palette";
import type { Renderer } from "./renderer";

const VERTEX = `#version 300 es
in vec4 box;
in vec4 color;
uniform vec2 screen;
out vec4 shade;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 place = (box.xy + corner * box.zw) / screen * 2.0 - 1.0;
  gl_Position = vec4(place.x, -place.y, 0.0, 1.0);
  shade = color;
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
out vec4 pixel;
void main() { pixel = shade; }`;

function program(gl: WebGL2RenderingContext): WebGLProgram | null {
  const linked = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(type);
    if (shader === null) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(linked, shader);
  }
  gl.linkProgram(linked);
  return gl.getProgramParameter(linked, gl.LINK_STATUS) ? linked : null;
}

const OPTIONS: WebGLContextAttributes = { alpha: true, antialias: false, depth: false, failIfMajorPerformanceCaveat: true };
let software: boolean | undefined;

/**
 * Does the processor do a graphics device's work? A frame of 12,000 rectangles then took 250 ms, against 17 ms on a 2D
 * canvas. Browsers say so by failIfMajorPerformanceCaveat or by name only; a canvas asked once can never be a 2D one.
 */
function isSoftware(): boolean {
  if (software === undefined) {
    const gl = document.createElement("canvas").getContext("webgl2", OPTIONS);
    const known = gl?.getExtension("WEBGL_debug_renderer_info");
    const name = gl === null ? "none" : String(gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
    software = gl === null || /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return software;
}

export function webglRenderer(canvas: HTMLCanvasElement, lost: () => void): Renderer | null {
  if (isSoftware()) return null;
  const gl = canvas.getContext("webgl2", OPTIONS);
  if (gl === null) return null;
  const linked = program(gl);
  if (linked === null) return null;
  let gone = false;
  const onLost = (event: Event) => {
    event.preventDefault();
    if (!gone) lost();
  };
  canvas.addEventListener("webglcontextlost", onLost);
  const boxes = gl.createBuffer();
  const colors = gl.createBuffer();
  const color = new Uint8Array(4 * MOST);
  const attribute = (buffer: WebGLBuffer | null, name: string, type: number, normalized: boolean, bytes: number) => {
    const at = gl.getAttribLocation(linked, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, 4, type, normalized, 0, 0);
    gl.vertexAttribDivisor(at, 1);
  };
  attribute(boxes, "box", gl.FLOAT, false, 16 * MOST);
  attribute(colors, "color", gl.UNSIGNED_BYTE, true, 4 * MOST);
  gl.useProgram(linked);
  const screen = gl.getUniformLocation(linked, "screen");

  const draw = (frame: Frame, palette: Palette, width: number, height: number, ratio: number): number => {
    gl.viewport(0, 0, Math.round(width * ratio), Math.round(height * ratio));
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (frame.count === 0) return 0;
    for (let i = 0; i < frame.count; i++) {
      const rgb = palette.rgb[shadeOf(frame.kind[i]!, frame.fill[i]!)]!;
      color[4 * i] = rgb[0];
      color[4 * i + 1] = rgb[1];
      color[4 * i + 2] = rgb[2];
      color[4 * i + 3] = 255;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, boxes);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, frame.box, 0, 4 * frame.count);
    gl.bindBuffer(gl.ARRAY_BUFFER, colors);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, color, 0, 4 * frame.count);
    gl.uniform2f(screen, width, height);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, frame.count);
    return 1;
  };
  const free = () => {
    gone = true;
    canvas.removeEventListener("webglcontextlost", onLost);
    gl.getExtension("WEBGL_lose_context")?.loseContext();
  };
  return { kind: "webgl2", draw, free };
}
