"""Packages of rotations, vectors and meshes."""

from __future__ import annotations

import numpy as np

from .case import Cases

N = 20_000
_angles = np.linspace(0.0, 12.0, N)
Q = np.stack([np.cos(_angles), np.sin(_angles), 0.3 * np.cos(2 * _angles), 0.1 + 0 * _angles], 1)
UNIT = Q / np.sqrt((Q * Q).sum(1, keepdims=True))
OTHER = UNIT[::-1].copy()
V = np.stack([np.sin(_angles), np.cos(3 * _angles), 0.2 + np.sin(5 * _angles)], 1)
W = V[::-1] * 1.5 + 0.1
TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
TURN4 = np.eye(4)
TURN4[:3, :3] = TURN
q, r, v, w = UNIT[3], UNIT[777], V[5], np.array([0.6, 0.0, 0.8])
TRIANGLES = np.stack([V, W, V + np.array([0.3, -0.2, 0.1])], 1)
MANY = np.broadcast_to(TURN, (N, 3, 3)).copy()

SPACE: dict[str, Cases] = {
    "transforms3d": Cases("transforms3d", {
        "quaternions.quat2mat": (q,), "quaternions.mat2quat": (TURN,),
        "quaternions.qmult": (q, r), "quaternions.qinverse": (q,), "quaternions.qexp": (q,),
        "quaternions.qlog": (q,), "quaternions.rotate_vector": (v, q),
        "quaternions.axangle2quat": (w, 0.7), "quaternions.quat2axangle": (q,),
        "axangles.axangle2mat": (w, 0.7), "euler.euler2mat": (0.1, 0.2, 0.3),
        "euler.mat2euler": (TURN,), "euler.euler2quat": (0.1, 0.2, 0.3),
        "affines.compose": (w, TURN, np.array([1.0, 2.0, 0.5])), "zooms.zfdir2mat": (2.0, w),
        "reflections.rfnorm2mat": (w,),
    }),
    "rowan": Cases("rowan", {
        "conjugate": (Q,), "multiply": (Q, OTHER), "divide": (Q, OTHER), "exp": (Q,), "log": (Q,),
        "inverse": (Q,), "norm": (Q,), "normalize": (Q,), "power": (UNIT, 2.5),
        "rotate": (UNIT, V), "to_matrix": (UNIT,), "to_axis_angle": (UNIT,), "to_euler": (UNIT,),
        "from_euler": (_angles, 0.3 * _angles, 0.1), "from_axis_angle": (V, _angles),
        "from_matrix": (MANY,), "vector_vector_rotation": (V, W), "isclose": (Q, OTHER),
        "interpolate.slerp": (UNIT, OTHER, 0.3), "mapping.kabsch": (V, W),
        "geometry.distance": (UNIT, OTHER), "geometry.riemann_exp_map": (UNIT, Q),
    }),
    "vg": Cases("vg", {
        "normalize": (V,), "perpendicular": (V, W), "project": (V, w),
        "scalar_projection": (V, w), "reject": (V, w), "magnitude": (V,),
        "euclidean_distance": (V, W), "angle": (V, W), "signed_angle": (V, W, w),
        "rotate": (V, w, 30.0), "principal_components": (V[:200],), "major_axis": (V[:200],),
        "apex": (V, w), "nearest": (V, v), "farthest": (V, v), "within": (V, 1.0, v),
        "average": (V,), "cross": (V, W), "dot": (V, W), "almost_collinear": (v, 2 * v),
        "aligned_with": (v, w),
    }),
    "trimesh": Cases("trimesh", {
        "transformations.euler_matrix": (0.1, 0.2, 0.3),
        "transformations.euler_from_matrix": (TURN4,),
        "transformations.quaternion_matrix": (q,),
        "transformations.quaternion_from_matrix": (TURN4,),
        "transformations.quaternion_multiply": (q, r),
        "transformations.quaternion_slerp": (q, r, 0.3),
        "transformations.rotation_matrix": (0.7, w, v),
        "transformations.rotation_from_matrix": (TURN4,),
        "transformations.reflection_matrix": (v, w),
        "transformations.decompose_matrix": (TURN4,),
        "transformations.unit_vector": (V, 1), "transformations.vector_norm": (V, 1),
        "transformations.angle_between_vectors": (V, W, True, 1),
        "transformations.transform_points": (V, TURN4),
        "transformations.superimposition_matrix": (V.T, W.T),
        "transformations.is_rigid": (TURN4,),
        "triangles.cross": (TRIANGLES,), "triangles.area": (TRIANGLES,),
        "triangles.normals": (TRIANGLES,), "triangles.angles": (TRIANGLES,),
        "triangles.extents": (TRIANGLES,), "triangles.mass_properties": (TRIANGLES,),
        "triangles.points_to_barycentric": (TRIANGLES, W),
        "triangles.closest_point": (TRIANGLES, W), "geometry.plane_transform": (v, w),
        "geometry.vector_angle": (np.stack([UNIT[:, :3], OTHER[:, :3]], 1),),
        "points.point_plane_distance": (V, w), "points.plane_fit": (V,),
        "points.points_inertia": (V,), "bounds.corners": (np.array([[0.0, 0, 0], [1, 2, 3]]),),
        "util.unitize": (V,), "util.diagonal_dot": (V, W),
    }),
    "pyrr": Cases("pyrr", {
        "matrix44.create_from_eulers": (w,), "matrix44.create_from_quaternion": (q,),
        "matrix44.multiply": (TURN4, TURN4), "matrix44.inverse": (TURN4,),
        "matrix44.apply_to_vector": (TURN4, v),
        "matrix44.create_perspective_projection": (60.0, 1.5, 0.1, 100.0),
        "matrix44.create_look_at": (v, w, np.array([0.0, 1.0, 0.0])),
        "quaternion.cross": (q, r), "quaternion.slerp": (q, r, 0.3),
        "quaternion.create_from_axis_rotation": (w, 0.7), "quaternion.normalize": (Q,),
        "quaternion.apply_to_vector": (q, v), "vector.normalize": (V,), "vector3.cross": (V, W),
    }),
    "ahrs": Cases("ahrs.common.orientation", {
        "q_prod": (q, r), "q_conj": (q,), "q2R": (q,), "q2euler": (q,), "q_rot": (q, v),
        "axang2quat": (w, 0.7), "rpy2q": (w,), "ecompass": (v, w), "acc2q": (v,),
        "am2DCM": (v, w), "slerp": (q, r, np.linspace(0, 1, 50)), "chiaverini": (TURN,),
        "shepperd": (TURN,), "hughes": (TURN,),
    }),
}
